### Install both files and start the service.
(set -a; . ./env; tollgate serve >log 2>&1) &
until curl -sf http://127.0.0.1:8080/healthz && curl -s http://127.0.0.1:8070/console/operator; do sleep 0.1; done

### ## 3. Commands, and the catalog
mkdir unit
cp "$(readlink -f "$(command -v tollgate)")" unit/
sed "s|/usr/local/bin/tollgate|$PWD/unit/tollgate|; s|=tollgate$|=root|" "$TREE/deploy/systemd/tollgate.service" >unit/tollgate.service
systemd-analyze verify unit/tollgate.service

### The service becomes ready when you apply a catalog
sh -n tg
