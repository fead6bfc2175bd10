### $ caddy validate --config Caddyfile
sed -i '1s|.*|{\n\tadmin off\n}\nhttp://127.0.0.1:8081 {|' Caddyfile

### $ nginx -t -p . -c nginx.conf -e nginx.log
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=api.example.com -keyout key.pem -out cert.pem
sed -i 's|listen 443 ssl|listen 127.0.0.1:8443 ssl|
  s|^http {|pid nginx.pid;\nhttp {\n    access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;|' nginx.conf

### $ export TOLLGATE_CONFIG=tollgate.yaml
ADDRESS=127.0.0.2

### $ bash check.sh $API $KEY
printf 'insecure\ninterface = 127.0.0.2\n' >~/.curlrc
until curl -sf http://127.0.0.1:8081/readyz && curl -sf https://127.0.0.1:8443/readyz; do sleep 0.1; done
API=http://127.0.0.1:8081

### Both proxies give the same result.
diff <(bash check.sh https://127.0.0.1:8443 $KEY) <(bash check.sh $API $KEY)
for proxy in $API https://127.0.0.1:8443; do
  curl -s --interface 127.0.0.3 -H 'X-Forwarded-For: 127.0.0.2' $proxy/v1/models -H "Authorization: Bearer $KEY" | grep 'address 127.0.0.3'
  curl -s $proxy/admin/v1/lines | grep not_found
done
