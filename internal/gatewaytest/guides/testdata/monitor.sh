### ```yaml prometheus.yml
cp "$TREE/deploy/monitoring/alerts.yaml" .
python3 -m json.tool "$TREE/deploy/monitoring/dashboard.json" >/dev/null

### $ promtool check config prometheus.yml
sed -i 's/15s/1s/g' prometheus.yml
