### $ tollgate account list
tollgate serve >/dev/null 2>&1 &
ready
