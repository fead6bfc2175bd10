### ## 1. List the customers
tollgate serve >/dev/null 2>&1 &
ready

### (and so on, twenty lines)
for n in $(seq 4 20); do echo "Customer $n,c$n@customers.example,5"; done >>customers.csv
