// The responses half of the official Node client against a running gateway.
// clients/node_test.go starts the gateway and passes addresses and keys in
// TOLLGATE_TEST.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';

const { url, ...keys } = JSON.parse(process.env.TOLLGATE_TEST);

// connect returns a client without retries, so that each answer is seen.
const connect = (apiKey) => new OpenAI({ baseURL: url, apiKey, maxRetries: 0 });
const client = connect(keys.key);

const ask = (model, input, more = {}) => ({ model, input, ...more });

const weather = {
  type: 'function',
  name: 'get_weather',
  strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
};

const person = {
  type: 'json_schema',
  name: 'person',
  strict: true,
  schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false },
};

for (const line of ['responses', 'chat', 'messages']) {
  test(`answers on ${line}`, async () => {
    const { data, response } = await client.responses.create(ask(`on-${line}`, 'Good morning')).withResponse();
    assert.deepEqual([data.object, data.model, data.status], ['response', `on-${line}`, 'completed']);
    assert.match(data.output_text, /Good morning/);
    assert.equal(data.usage.total_tokens, data.usage.input_tokens + data.usage.output_tokens);
    assert.match(data._request_id, /^req_/);
    assert.equal(response.headers.get('request-id'), data._request_id);
  });

  test(`streams on ${line}`, async () => {
    let heard = '';
    const stream = client.responses.stream(ask(`on-${line}`, 'Tell me more'));
    stream.on('response.output_text.delta', (event) => { heard += event.delta; });
    const response = await stream.finalResponse();
    assert.match(heard, /Tell me more/);
    assert.deepEqual([response.output_text, response.status, response.model], [heard, 'completed', `on-${line}`]);
    assert.ok(response.usage.output_tokens > 0, JSON.stringify(response.usage));
  });

  test(`calls functions on ${line}`, async () => {
    const input = [{ role: 'user', content: 'Please get weather for Oslo' }];
    const stream = client.responses.stream(ask(`on-${line}`, input, { tools: [weather] }));
    const { output } = await stream.finalResponse();
    const call = output.find((item) => item.type === 'function_call');
    assert.equal(call.name, 'get_weather');
    assert.ok('city' in call.parsed_arguments, JSON.stringify(call));
    const { parsed_arguments: _, ...said } = call;
    input.push(said, { type: 'function_call_output', call_id: call.call_id, output: 'Rain, 4 degrees' });
    const answer = await client.responses.create(ask(`on-${line}`, input, { tools: [weather] }));
    assert.match(answer.output_text, /Rain, 4 degrees/);
  });

  test(`answers in a shape on ${line}`, async () => {
    const answer = await client.responses.parse(ask(`on-${line}`, 'Who are you?', { text: { format: person } }));
    assert.equal(typeof answer.output_parsed.name, 'string');
  });

  test(`thinks on ${line}`, async () => {
    const { output } = await client.responses.create(ask(`thinks-on-${line}`, 'Why?', { reasoning: { effort: 'low', summary: 'auto' } }));
    assert.deepEqual(output.map((item) => item.type), ['reasoning', 'message']);
    assert.ok(output[0].summary[0].text, JSON.stringify(output));
  });

  test(`a stream that fails midway says so on ${line}`, async () => {
    let heard = '';
    let end;
    for await (const event of await client.responses.create(ask(`cut-on-${line}`, 'Hello', { stream: true }))) {
      if (event.type === 'response.output_text.delta') heard += event.delta;
      end = event;
    }
    assert.notEqual(heard, '');
    assert.deepEqual([end.type, end.response.status], ['response.failed', 'failed']);
    assert.ok(end.response.error.code && end.response.error.message, JSON.stringify(end));
  });
}

const refusals = [
  ['no input', { model: 'on-responses' }, OpenAI.BadRequestError, 400, 'invalid_request', 'input'],
  ['a stored response', ask('on-responses', 'x', { previous_response_id: 'resp_1' }), OpenAI.BadRequestError, 400, 'invalid_request', 'previous_response_id'],
  ['unknown model', ask('nothing-1', 'x'), OpenAI.BadRequestError, 400, 'model_not_found', 'model'],
  ['provider rejects', ask('strict-1', 'x'), OpenAI.BadRequestError, 400, 'context_length_exceeded', 'input'],
  ['unknown key', ask('on-responses', 'x'), OpenAI.AuthenticationError, 401, 'invalid_api_key', null, 'sk-nobody'],
  ['no balance', ask('on-responses', 'x'), OpenAI.APIError, 402, 'insufficient_quota', null, keys.poor],
  ['model allowlist', ask('on-responses', 'x'), OpenAI.PermissionDeniedError, 403, 'permission_denied', 'model', keys.other],
  ['model under maintenance', ask('resting-1', 'x'), OpenAI.InternalServerError, 503, 'model_maintenance', 'model'],
];

for (const [name, params, kind, status, code, param, key] of refusals) {
  test(`refuses: ${name}`, async () => {
    await assert.rejects(connect(key ?? keys.key).responses.create(params), (error) => {
      assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
      assert.deepEqual([error.status, error.code, error.param], [status, code, param]);
      assert.match(error.requestID, /^req_/);
      return true;
    });
  });
}
