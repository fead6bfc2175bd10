// The official Node client against a running gateway. clients/node_test.go
// starts the gateway and passes addresses and keys in TOLLGATE_TEST.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';

const { url, ...keys } = JSON.parse(process.env.TOLLGATE_TEST);

// connect returns a client without retries, so that each answer is seen.
const connect = (apiKey) => new OpenAI({ baseURL: url, apiKey, maxRetries: 0 });
const client = connect(keys.key);

const ask = (model, content, more = {}) => ({ model, messages: [{ role: 'user', content }], ...more });

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

test('lists the models but the retired', async () => {
  const ids = [];
  for await (const model of await client.models.list()) ids.push(model.id);
  assert.ok(ids.includes('swift-1') && ids.includes('soon-1'), ids.join());
  assert.ok(!ids.includes('gone-1'), ids.join());
});

test('answers', async () => {
  const { data, response } = await client.chat.completions.create(ask('swift-1', 'Good morning')).withResponse();
  assert.equal(data.model, 'swift-1');
  assert.match(data.choices[0].message.content, /Good morning/);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
  assert.match(response.headers.get('x-request-id'), /^req_/);
  assert.equal(response.headers.get('request-id'), response.headers.get('x-request-id'));
});

test('streams', async () => {
  const chunks = [];
  for await (const chunk of await client.chat.completions.create(ask('swift-1', 'Tell me more', { stream: true }))) {
    chunks.push(chunk);
  }
  assert.match(chunks.map((c) => c.choices[0].delta.content ?? '').join(''), /Tell me more/);
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
  assert.ok(chunks.every((c) => c.id === chunks[0].id && c.model === 'swift-1' && !c.usage));
});

test('streams usage to those who ask', async () => {
  let last;
  const params = ask('swift-1', 'And the bill?', { stream: true, stream_options: { include_usage: true } });
  for await (const chunk of await client.chat.completions.create(params)) last = chunk;
  assert.deepEqual(last.choices, []);
  assert.ok(last.usage.prompt_tokens > 0 && last.usage.completion_tokens > 0, JSON.stringify(last));
});

test('runs tools', async () => {
  const asked = [];
  const runner = client.chat.completions.runTools({
    ...ask('swift-1', 'Please get weather for Oslo'),
    tools: [{
      ...weather,
      function: {
        ...weather.function,
        parse: JSON.parse,
        function: (args) => { asked.push(args); return 'Rain, 4 degrees'; },
      },
    }],
  });
  assert.match(await runner.finalContent(), /Rain, 4 degrees/);
  assert.equal(asked.length, 1);
  assert.ok('city' in asked[0], JSON.stringify(asked));
});

test('streams tool calls', async () => {
  const stream = client.chat.completions.stream(ask('swift-1', 'Please get weather for Oslo', { tools: [weather] }));
  const message = await stream.finalMessage();
  assert.equal(message.tool_calls[0].function.name, 'get_weather');
  assert.ok('city' in JSON.parse(message.tool_calls[0].function.arguments));
});

test('a stream that fails midway throws', async () => {
  let text = '';
  await assert.rejects(async () => {
    const stream = await client.chat.completions.create(ask('cut-1', 'Hello', { stream: true }));
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? '';
  }, (error) => error instanceof OpenAI.APIError && error.code !== undefined);
  assert.notEqual(text, '');
});

test('a stream that is left midway does not hurt', async () => {
  const stream = await client.chat.completions.create(ask('swift-1', 'Tell me more', { stream: true }));
  for await (const chunk of stream) {
    assert.equal(chunk.model, 'swift-1');
    break;
  }
});

const refusals = [
  ['no messages', { model: 'swift-1', messages: [] }, OpenAI.BadRequestError, 400, 'invalid_messages', 'messages'],
  ['unknown role', { model: 'swift-1', messages: [{ role: 'wizard', content: 'x' }] }, OpenAI.BadRequestError, 400, 'invalid_role', 'messages[0].role'],
  ['no tokens', ask('swift-1', 'x', { max_tokens: 0 }), OpenAI.BadRequestError, 400, 'invalid_max_tokens', 'max_tokens'],
  ['unknown model', ask('nothing-1', 'x'), OpenAI.BadRequestError, 400, 'model_not_found', 'model'],
  ['retired model', ask('gone-1', 'x'), OpenAI.BadRequestError, 400, 'model_disabled', 'model'],
  ['provider rejects', ask('strict-1', 'x'), OpenAI.BadRequestError, 400, 'context_length_exceeded', 'messages'],
  ['unknown key', ask('swift-1', 'x'), OpenAI.AuthenticationError, 401, 'invalid_api_key', null, 'tg-nobody'],
  ['no balance', ask('swift-1', 'x'), OpenAI.APIError, 402, 'insufficient_quota', null, keys.poor],
  ['model allowlist', ask('swift-1', 'x'), OpenAI.PermissionDeniedError, 403, 'permission_denied', 'model', keys.other],
  ['provider is busy', ask('busy-1', 'x'), OpenAI.InternalServerError, 502, 'upstream_busy', null],
  ['provider breaks', ask('broken-1', 'x'), OpenAI.InternalServerError, 502, 'upstream_connection_error', null],
  ['model under maintenance', ask('resting-1', 'x'), OpenAI.InternalServerError, 503, 'model_maintenance', 'model'],
];

for (const [name, params, kind, status, code, param, key] of refusals) {
  test(`refuses: ${name}`, async () => {
    await assert.rejects(connect(key ?? keys.key).chat.completions.create(params), (error) => {
      assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
      assert.deepEqual([error.status, error.code, error.param], [status, code, param]);
      assert.match(error.requestID, /^req_/);
      return true;
    });
  });
}

test('refuses: over the requests per minute', async () => {
  const hasty = connect(keys.hasty);
  await hasty.chat.completions.create(ask('swift-1', 'First'));
  await assert.rejects(hasty.chat.completions.create(ask('swift-1', 'Second')), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.equal(error.code, 'rate_limit_exceeded');
    assert.equal(error.headers.get('retry-after'), null);
    return true;
  });
});

test('refuses: unknown path', async () => {
  await assert.rejects(client.get('/nowhere'), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, 'not_found');
    return true;
  });
});
