// Google's official Node client against a running gateway, on lines of every
// form. clients/node_test.go starts the gateway and passes addresses and keys in
// TOLLGATE_TEST.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FunctionCallingConfigMode, GoogleGenAI, Type } from '@google/genai';

const { base, ...keys } = JSON.parse(process.env.TOLLGATE_TEST);

const connect = (apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: base } });
const client = connect(keys.key);

const weather = {
  name: 'get_weather',
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] },
};
const redDot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

// refused returns the status and the gateway's code of an error.
const refused = async (request) => {
  try {
    await request;
  } catch (error) {
    return [error.status, JSON.parse(error.message).error.details[0].metadata.code];
  }
  return [200];
};

for (const line of ['chat', 'responses', 'messages']) {
  const model = `on-${line}`;

  test(`answers on ${line}`, async () => {
    const answer = await client.models.generateContent({ model, contents: 'Good morning', config: { systemInstruction: 'Be brief.' } });
    assert.match(answer.text, /Good morning/);
    assert.deepEqual([answer.modelVersion, answer.candidates[0].finishReason], [model, 'STOP']);
    const usage = answer.usageMetadata;
    assert.equal(usage.totalTokenCount, usage.promptTokenCount + usage.candidatesTokenCount);
    assert.match(answer.sdkHttpResponse.headers['x-request-id'], /^req_/);
  });

  test(`streams on ${line}`, async () => {
    let text = '';
    let last;
    for await (const chunk of await client.models.generateContentStream({ model, contents: 'Tell me more' })) {
      text += chunk.text ?? '';
      last = chunk;
    }
    assert.match(text, /Tell me more/);
    assert.equal(last.candidates[0].finishReason, 'STOP');
    assert.ok(last.usageMetadata.candidatesTokenCount > 0);
  });

  test(`calls functions on ${line}`, async () => {
    const config = {
      tools: [{ functionDeclarations: [weather] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['get_weather'] } },
    };
    const question = { role: 'user', parts: [{ text: 'What is the weather?' }] };
    const answer = await client.models.generateContent({ model, contents: [question], config });
    const [call] = answer.functionCalls;
    assert.equal(call.name, 'get_weather');
    assert.equal(typeof call.args.city, 'string');
    const result = { role: 'user', parts: [{ functionResponse: { id: call.id, name: call.name, response: { output: 'rain' } } }] };
    const end = await client.models.generateContent({
      model, contents: [question, answer.candidates[0].content, result], config: { tools: config.tools },
    });
    assert.match(end.text, /rain/);
  });

  test(`keeps a chat on ${line}`, async () => {
    const chat = client.chats.create({ model });
    await chat.sendMessage({ message: 'One' });
    for await (const chunk of await chat.sendMessageStream({ message: 'Two' })) assert.equal(chunk.modelVersion, model);
    const history = chat.getHistory(true);
    assert.equal(history[0].parts[0].text, 'One');
    assert.match(history.slice(3).flatMap((c) => c.parts).map((p) => p.text).join(''), /Two/);
  });

  test(`looks at pictures and answers in JSON on ${line}`, async () => {
    const seen = await client.models.generateContent({
      model, contents: [{ role: 'user', parts: [{ text: 'What is it?' }, { inlineData: { mimeType: 'image/png', data: redDot } }] }],
    });
    assert.match(seen.text, /What is it/);
    const answer = await client.models.generateContent({
      model, contents: 'Who?', config: {
        responseMimeType: 'application/json',
        responseSchema: { type: Type.OBJECT, properties: { name: { type: Type.STRING } }, required: ['name'] },
      },
    });
    assert.equal(typeof JSON.parse(answer.text).name, 'string');
  });

  test(`breaks off with an error on ${line}`, async () => {
    let text = '';
    const drain = async () => {
      for await (const chunk of await client.models.generateContentStream({ model: `cut-on-${line}`, contents: 'Go on' })) {
        text += chunk.text ?? '';
      }
    };
    await assert.rejects(drain(), (error) => error.message.includes('incomplete'));
    assert.ok(text.length > 0);
  });
}

test('shows thoughts to those who ask', async () => {
  const think = (thinkingConfig) => client.models.generateContent({ model: 'thinks-on-chat', contents: 'Hm?', config: { thinkingConfig } });
  const thoughts = (answer) => answer.candidates[0].content.parts.filter((p) => p.thought).length;
  assert.equal(thoughts(await think({ includeThoughts: true })), 1);
  assert.equal(thoughts(await think({})), 0);
});

test('counts tokens and lists models', async () => {
  const { totalTokens } = await client.models.countTokens({ model: 'on-chat', contents: 'one two three' });
  assert.ok(totalTokens > 2);
  const names = [];
  for await (const model of await client.models.list({ config: { pageSize: 5 } })) names.push(model.name);
  assert.ok(names.includes('models/on-chat') && !names.includes('models/swift-1') && !names.includes('models/gone-1'), names.join());
  assert.equal((await client.models.get({ model: 'on-chat' })).inputTokenLimit, 128000);
});

test('is refused in its own words', async () => {
  const ask = (model, by = client, config = {}) => by.models.generateContent({ model, contents: 'hi', config });
  assert.deepEqual(await refused(ask('no-such')), [404, 'not_found']);
  assert.deepEqual(await refused(ask('on-chat', connect('sk-wrong'))), [401, 'invalid_api_key']);
  assert.deepEqual(await refused(ask('on-chat', connect(keys.poor))), [402, 'insufficient_quota']);
  assert.deepEqual(await refused(ask('on-chat', connect(keys.other))), [403, 'permission_denied']);
  assert.deepEqual(await refused(ask('on-chat', client, { tools: [{ googleSearch: {} }] })), [400, 'invalid_request']);
  assert.deepEqual(await refused(ask('down-1')), [502, 'upstream_unavailable']);
});
