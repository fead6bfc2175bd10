// The official Node client of the messages form against a running gateway.
// clients/node_test.go starts the gateway and passes addresses and keys in
// TOLLGATE_TEST.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';

const { native, ...keys } = JSON.parse(process.env.TOLLGATE_TEST);

// connect returns a client without retries, so that each answer is seen.
const connect = (apiKey) => new Anthropic({ baseURL: native, apiKey, maxRetries: 0 });
const client = connect(keys.key);

const ask = (model, content, more = {}) => ({ model, max_tokens: 1000, messages: [{ role: 'user', content }], ...more });

const textOf = (message) => message.content.map((block) => block.text ?? '').join('');

const weather = {
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

for (const line of ['messages', 'chat']) {
  test(`answers on ${line}`, async () => {
    const { data, response } = await client.messages.create(ask(`on-${line}`, 'Good morning')).withResponse();
    assert.deepEqual([data.type, data.role, data.model, data.stop_reason], ['message', 'assistant', `on-${line}`, 'end_turn']);
    assert.match(textOf(data), /Good morning/);
    assert.ok(data.usage.input_tokens > 0 && data.usage.output_tokens > 0, JSON.stringify(data.usage));
    assert.match(data._request_id, /^req_/);
    assert.equal(response.headers.get('x-request-id'), data._request_id);
  });

  test(`streams on ${line}`, async () => {
    let heard = '';
    const stream = client.messages.stream(ask(`on-${line}`, 'Tell me more')).on('text', (piece) => { heard += piece; });
    const message = await stream.finalMessage();
    assert.match(heard, /Tell me more/);
    assert.equal(textOf(message), heard);
    assert.deepEqual([message.model, message.stop_reason], [`on-${line}`, 'end_turn']);
    assert.ok(message.usage.output_tokens > 0, JSON.stringify(message.usage));
  });

  test(`calls tools on ${line}`, async () => {
    const params = ask(`on-${line}`, 'Please get weather for Oslo', { tools: [weather] });
    const message = await client.messages.stream(params).finalMessage();
    const call = message.content.find((block) => block.type === 'tool_use');
    assert.deepEqual([message.stop_reason, call.name], ['tool_use', 'get_weather']);
    assert.ok('city' in call.input, JSON.stringify(call));
    params.messages.push(
      { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Rain, 4 degrees' }] },
    );
    assert.match(textOf(await client.messages.create(params)), /Rain, 4 degrees/);
  });

  test(`answers in a shape on ${line}`, async () => {
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false };
    const message = await client.messages.create(ask(`on-${line}`, 'Who are you?', { output_config: { format: { type: 'json_schema', schema } } }));
    assert.equal(typeof JSON.parse(textOf(message)).name, 'string');
  });

  test(`a stream that fails midway throws on ${line}`, async () => {
    let heard = '';
    const stream = client.messages.stream(ask(`cut-on-${line}`, 'Hello')).on('text', (piece) => { heard += piece; });
    await assert.rejects(stream.finalMessage(), Anthropic.APIError);
    assert.notEqual(heard, '');
  });

  test(`counts tokens on ${line}`, async () => {
    const { input_tokens: tokens } = await client.messages.countTokens({
      model: `on-${line}`, messages: [{ role: 'user', content: 'How long is this?' }],
    });
    assert.ok(tokens > 4 && tokens < 50, `${tokens}`);
  });
}

test('a stream that is left midway does not hurt', async () => {
  for await (const event of await client.messages.create(ask('on-messages', 'Tell me more', { stream: true }))) {
    assert.equal(event.type, 'message_start');
    break;
  }
});

test('pages through the models', async () => {
  const ids = [];
  for await (const model of client.models.list({ limit: 3 })) {
    assert.ok(model.display_name && !Number.isNaN(Date.parse(model.created_at)), JSON.stringify(model));
    ids.push(model.id);
  }
  assert.ok(ids.length > 6 && new Set(ids).size === ids.length, ids.join());
  assert.ok(ids.includes('on-messages') && !ids.includes('swift-1') && !ids.includes('gone-1'), ids.join());
});

const refusals = [
  ['no tokens', ask('on-messages', 'x', { max_tokens: 0 }), Anthropic.BadRequestError, 400, 'invalid_request_error'],
  ['retired model', ask('gone-1', 'x'), Anthropic.BadRequestError, 400, 'invalid_request_error'],
  ['provider rejects', ask('strict-1', 'x'), Anthropic.BadRequestError, 400, 'invalid_request_error'],
  ['unknown key', ask('on-messages', 'x'), Anthropic.AuthenticationError, 401, 'authentication_error', 'sk-nobody'],
  ['no balance', ask('on-messages', 'x'), Anthropic.APIError, 402, 'billing_error', keys.poor],
  ['model allowlist', ask('on-messages', 'x'), Anthropic.PermissionDeniedError, 403, 'permission_error', keys.other],
  ['unknown model', ask('nothing-1', 'x'), Anthropic.NotFoundError, 404, 'not_found_error'],
  ['model of another form', ask('swift-1', 'x'), Anthropic.NotFoundError, 404, 'not_found_error'],
  ['provider is down', ask('down-1', 'x'), Anthropic.InternalServerError, 502, 'api_error'],
  ['model under maintenance', ask('resting-1', 'x'), Anthropic.InternalServerError, 503, 'api_error'],
];

for (const [name, params, kind, status, type, key] of refusals) {
  test(`refuses: ${name}`, async () => {
    await assert.rejects(connect(key ?? keys.key).messages.create(params), (error) => {
      assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
      assert.deepEqual([error.status, error.error.type, error.error.error.type], [status, 'error', type]);
      assert.match(error.requestID, /^req_/);
      return true;
    });
  });
}

test('refuses: over the requests per minute', async () => {
  const hasty = connect(keys.hastyNative);
  await hasty.messages.create(ask('on-messages', 'First'));
  await assert.rejects(hasty.messages.create(ask('on-messages', 'Second')), Anthropic.RateLimitError);
});
