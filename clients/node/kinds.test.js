// The official Node client with models that answer at once without a chat.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI, { toFile } from 'openai';

const { url, key } = JSON.parse(process.env.TOLLGATE_TEST);
const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });

test('moderates texts', async () => {
  const answer = await client.moderations.create({ model: 'judge-1', input: ['A quiet evening.', 'A story about violence.'] });
  assert.equal(answer.model, 'judge-1');
  assert.deepEqual(answer.results.map((result) => result.flagged), [false, true]);
  assert.equal(answer.results[1].categories.violence, true);
});

test('moderates texts and images without a model', async () => {
  const answer = await client.moderations.create({
    input: [
      { type: 'text', text: 'A quiet evening.' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
    ],
  });
  assert.equal(answer.model, 'judge-1');
  assert.deepEqual(answer.results.map((result) => result.flagged), [false]);
});

test('refuses to moderate nothing', async () => {
  await assert.rejects(client.moderations.create({ model: 'judge-1', input: [] }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.code, 'invalid_request');
    assert.equal(error.param, 'input');
    return true;
  });
});

test('speaks and writes down', async () => {
  const input = 'A lighthouse in the fog.';
  const speech = await client.audio.speech.create({ model: 'voice-1', voice: 'alloy', input });
  assert.equal(speech.headers.get('content-type'), 'audio/mpeg');
  const sound = Buffer.from(await speech.arrayBuffer());
  const file = () => toFile(sound, 'speech.mp3');
  const whole = await client.audio.transcriptions.create({ model: 'scribe-1', file: await file() });
  assert.equal(whole.text, input);
  let streamed = '';
  for await (const event of await client.audio.transcriptions.create({ model: 'scribe-1', file: await file(), stream: true })) {
    if (event.type === 'transcript.text.done') streamed = event.text;
  }
  assert.equal(streamed, input);
  const translated = await client.audio.translations.create({ model: 'scribe-1', file: await file() });
  assert.equal(translated.text, input);
});

test('refuses to speak nothing', async () => {
  await assert.rejects(client.audio.speech.create({ model: 'voice-1', voice: 'alloy', input: '' }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, 'input');
    return true;
  });
});
