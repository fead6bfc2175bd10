import base64, hashlib, hmac, json, os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
seen = set()  # in production, use a table of your database


def verified(headers, body):
    event, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not stamp.isdecimal() or abs(time.time() - int(stamp)) > 300:
        return False
    mac = hmac.new(SECRET, f"{event}.{stamp}.".encode() + body, hashlib.sha256)
    want = b"v1," + base64.b64encode(mac.digest())
    given = headers.get("webhook-signature", "").encode().split(b" ")
    return any([hmac.compare_digest(want, one) for one in given])


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # seconds to wait for data

    def do_POST(self):
        size = int(self.headers.get("content-length", 0))
        body = self.rfile.read(size) if 0 < size <= 1 << 20 else b""
        if not verified(self.headers, body):
            return self.send_error(400)
        self.send_response(204)
        self.end_headers()
        if self.headers["webhook-id"] in seen:
            return
        seen.add(self.headers["webhook-id"])
        event = json.loads(body)
        print("verified", event["type"], event["data"].get("status", ""), flush=True)

    def log_message(self, *args):
        pass


print("waiting", flush=True)
ThreadingHTTPServer(("127.0.0.1", 9000), Receiver).serve_forever()
