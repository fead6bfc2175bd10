#= smtp.example.com:587 127.0.0.1:2525

### $ tollgate serve
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=smtp -addext 'subjectAltName=IP:127.0.0.1' \
  -keyout "$TMPDIR/smtp.key" -out "$TMPDIR/smtp.pem" 2>/dev/null
export SSL_CERT_FILE="$TMPDIR/smtp.pem"
python3 "$LIB/smtp.py" "$TMPDIR/smtp.pem" "$TMPDIR/smtp.key" "$TMPDIR/mails" &
until [ -e "$TMPDIR/mails" ]; do sleep 0.1; done

### ## 5. Watch that mails are sent
grep -q '^Subject: Your access to Example AI' "$TMPDIR/mails"
grep -q 'https://api.example.com/console/link#' "$TMPDIR/mails"
grep -q '^Subject: A test mail from Example AI' "$TMPDIR/mails"
