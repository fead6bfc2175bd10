"""An SMTP server at port 2525 with STARTTLS and AUTH PLAIN, which appends the mails to a file.

Usage: smtp.py CERTIFICATE KEY FILE
"""

import base64
import quopri
import socketserver
import ssl
import sys

certificate, key, mails = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
PASSWORD = base64.b64encode(b"\0postmaster\0correct horse").decode()


class Session(socketserver.StreamRequestHandler):
    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        secure = signed_in = False
        self.say("220 smtp ESMTP")
        while line := self.rfile.readline():  # of the encrypted connection after STARTTLS
            command, _, rest = line.decode().strip().partition(" ")
            command = command.upper()
            if command == "EHLO":
                self.say("250-smtp\r\n250 AUTH PLAIN" if secure else "250-smtp\r\n250 STARTTLS")
            elif command == "STARTTLS":
                self.say("220 go ahead")
                self.request = context.wrap_socket(self.request, server_side=True)
                self.rfile, self.wfile, secure = self.request.makefile("rb"), self.request.makefile("wb", 0), True
            elif command == "AUTH":
                signed_in = secure and rest == "PLAIN " + PASSWORD
                self.say("235 welcome" if signed_in else "535 authentication failed")
            elif command == "DATA" and signed_in:
                self.say("354 go ahead")
                body = b"".join(iter(self.rfile.readline, b".\r\n"))
                with open(mails, "ab") as out:
                    out.write(quopri.decodestring(body))
                self.say("250 taken")
            elif command == "QUIT":
                self.say("221 bye")
                return
            elif command in ("MAIL", "RCPT", "RSET", "NOOP") and signed_in:
                self.say("250 ok")
            else:
                self.say("503 sign in first")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True


with Server(("127.0.0.1", 2525), Session) as server:
    open(mails, "wb").close()
    server.serve_forever()
