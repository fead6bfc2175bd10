import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const secret = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
const seen = new Set(); // in production, use a table of your database

function verified(headers, body) {
  const stamp = headers['webhook-timestamp'] ?? '';
  if (!/^\d+$/.test(stamp) || Math.abs(Date.now() / 1000 - Number(stamp)) > 300) return false;
  const mac = createHmac('sha256', secret).update(`${headers['webhook-id']}.${stamp}.`).update(body);
  const want = Buffer.from('v1,' + mac.digest('base64'));
  return (headers['webhook-signature'] ?? '').split(' ').some((one) => {
    const given = Buffer.from(one);
    return given.length === want.length && timingSafeEqual(given, want);
  });
}

async function read(request) { // undefined if the body is too long or incomplete
  const parts = [];
  if (!(request.headers['content-length'] <= 1 << 20)) return;
  try { for await (const part of request) parts.push(part); } catch { return; }
  return Buffer.concat(parts);
}

createServer(async (request, response) => {
  const body = await read(request);
  if (!body || !verified(request.headers, body)) return response.writeHead(400, { connection: 'close' }).end();
  response.writeHead(204).end();
  const id = request.headers['webhook-id'];
  if (seen.has(id)) return;
  seen.add(id);
  const event = JSON.parse(body);
  console.log('verified', event.type, event.data.status ?? '');
}).listen(9000, '127.0.0.1', () => console.log('waiting'));
