<?php // receiver.php, for: WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:9000 receiver.php
function verified(string $body): bool
{
    $stamp = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (!ctype_digit($stamp) || abs(time() - (int) $stamp) > 300) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', getenv('WEBHOOK_SECRET')));
    $signed = ($_SERVER['HTTP_WEBHOOK_ID'] ?? '') . '.' . $stamp . '.' . $body;
    $want = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    foreach (explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $given) {
        if (hash_equals($want, $given)) {
            return true;
        }
    }
    return false;
}

$body = file_get_contents('php://input');
if (!verified($body)) {
    http_response_code(400);
    return;
}
http_response_code(204);
// An event may come twice: drop what has a webhook-id that your database knows.
$event = json_decode($body, true);
error_log('verified ' . $event['type'] . ' ' . ($event['data']['status'] ?? ''));
