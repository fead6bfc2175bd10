// Images and videos with the official Node client against a running gateway.
// clients/node_test.go starts the gateway and passes addresses and keys in
// TOLLGATE_TEST.
import assert from 'node:assert/strict';
import { File } from 'node:buffer';
import { test } from 'node:test';
import OpenAI, { toFile } from 'openai';

globalThis.File ??= File; // Node 18 has no global File, which uploads need

const { url, key, waiting } = JSON.parse(process.env.TOLLGATE_TEST).media;
const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });

// A PNG of one pixel.
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const picture = (name) => toFile(pixel, name, { type: 'image/png' });

// finished polls a job until it has ended.
async function finished(path) {
  for (;;) {
    const job = await client.get(path);
    if (job.status !== 'queued' && job.status !== 'processing') return job;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function checkPictures(submitted, count) {
  assert.equal(submitted.object, 'image.generation.job');
  assert.equal(submitted.status, 'queued');
  assert.equal(submitted.data, undefined);
  const job = await finished(`/images/jobs/${submitted.id}`);
  assert.equal(job.status, 'succeeded', JSON.stringify(job));
  assert.equal(job.data.length, count);
  for (const { url } of job.data) {
    const answer = await fetch(url);
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type'), /^image\//);
    assert.ok((await answer.arrayBuffer()).byteLength > 0);
  }
}

test('generates images', async () => {
  const { data, response } = await client.images
    .generate({ model: 'easel-1', prompt: 'a red hat', n: 2, size: '1024x1024', quality: 'high' })
    .withResponse();
  assert.equal(response.status, 202);
  await checkPictures(data, 2);
});

test('edits an image with a mask', async () => {
  const job = await client.images.edit({
    model: 'easel-1', prompt: 'make it blue', image: await picture('a.png'), mask: await picture('m.png'), n: 1, size: 'auto',
  });
  await checkPictures(job, 1);
});

test('edits several images', async () => {
  const job = await client.images.edit({
    model: 'easel-1', prompt: 'put one on the other', image: [await picture('a.png'), await picture('b.png')],
  });
  await checkPictures(job, 1);
});

test('waits for pictures', async () => {
  const patient = new OpenAI({ baseURL: url, apiKey: waiting, maxRetries: 0 });
  const generated = await patient.images.generate({ model: 'easel-1', prompt: 'a red hat', n: 2 });
  const edited = await patient.images.edit({ model: 'easel-1', prompt: 'make it blue', image: await picture('a.png') });
  const waited = await client.images.generate({ model: 'easel-1', prompt: 'a hat' }, { headers: { Prefer: 'wait=60' } });
  assert.equal(generated.data.length, 2);
  for (const { url, b64_json } of [...generated.data, ...edited.data, ...waited.data]) {
    const answer = await fetch(url);
    assert.match(answer.headers.get('content-type'), /^image\//);
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), Buffer.from(b64_json, 'base64'));
  }
  const inline = await patient.images.generate({ model: 'easel-1', prompt: 'a hat', response_format: 'b64_json' });
  assert.ok(inline.data[0].b64_json && !inline.data[0].url);
});

test('makes a video', async () => {
  const submitted = await client.post('/videos/generations', {
    body: { model: 'reel-1', prompt: 'the hat falls', duration: 2, image: `data:image/png;base64,${pixel.toString('base64')}` },
  });
  const job = await finished(`/videos/jobs/${submitted.id}`);
  assert.equal(job.status, 'succeeded', JSON.stringify(job));
  const answer = await fetch(job.data[0].url, { headers: { range: 'bytes=0-9' } });
  assert.equal(answer.status, 206);
  assert.equal(answer.headers.get('content-type'), 'video/mp4');
});

test('is told what is wrong', async () => {
  await assert.rejects(client.images.generate({ model: 'easel-1', prompt: 'a hat', size: '8K' }), (e) =>
    e instanceof OpenAI.BadRequestError && e.code === 'unsupported_resolution' && e.param === 'size');
  await assert.rejects(client.images.generate({ model: 'easel-1', prompt: 'a hat', stream: true }), (e) =>
    e instanceof OpenAI.BadRequestError && e.code === 'invalid_request' && e.param === 'stream');
  await assert.rejects(client.get('/videos/jobs/job_unknown'), (e) =>
    e instanceof OpenAI.NotFoundError && e.code === 'job_not_found');
});
