import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { fieldsOf, listOf, parseJson } from '@interlude/protocol/fields';
import { say, turn } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { bytesOf, PNG } from '../support/attachments';
import { claudeHome, killSession, quickStep } from '../support/claude-stage';
import { startCli } from '../support/cli';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { messages, Operator } from '../support/operator';

/** The real Claude Code, runner and dashboard. Only the model is scripted. */
let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

/** Forwards model requests and records their content other than text. */
async function watched(model: string) {
  const seen: Record<string, unknown>[] = [];
  const proxy = createServer(async (request, response) => {
    const body = await buffer(request);
    const asked = fieldsOf(parseJson(body.toString('utf8')));
    for (const { content } of listOf(asked.messages).map(fieldsOf)) {
      seen.push(
        ...listOf(content)
          .map(fieldsOf)
          .filter(({ type }) => type === 'image' || type === 'document'),
      );
    }
    const headers = { 'content-type': request.headers['content-type'] ?? '' };
    const { method = 'GET', url = '/' } = request;
    const answer = await fetch(model + url, { method, headers, ...(method === 'POST' ? { body } : {}) });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, seen };
}

test('the model receives a message’s image and text', async () => {
  const { cwd, claudeEnv, runnerEnv, problems, remove } = await claudeHome(server, {
    turns: [turn(/LOOK/, quickStep([say('I see a dot.')]))],
  });
  const { url, seen } = await watched(claudeEnv.ANTHROPIC_BASE_URL ?? '');
  const sessionId = randomUUID();
  const args = ['--session', sessionId, '--agent', 'looker', '--cwd', cwd, '--model', 'claude-sonnet-4-5'];
  const run = startCli(['runner', 'claude', ...args], { ...claudeEnv, ...runnerEnv, ANTHROPIC_BASE_URL: url });
  onTestFinished(async () => {
    run.process.kill('SIGINT');
    run.process.kill('SIGINT');
    await run.ended;
    await killSession(sessionId);
    await remove();
  });
  const operator = new Operator(server, sessionId);
  await expect.poll(() => operator.session()).toMatchObject({ state: 'idle' });

  const path = `${server.url}/api/v1/sessions/${sessionId}`;
  const authorization = `Bearer ${server.token}`;
  const attach = async (name: string, type: string, body: Uint8Array<ArrayBuffer>) => {
    const headers = { authorization, 'content-type': type };
    const response = await fetch(`${path}/attachments?name=${name}`, { method: 'POST', headers, body });
    const { hash } = (await response.json()) as Attachment;
    return { hash, name };
  };
  const attachments = [
    await attach('dot.png', 'image/png', PNG),
    await attach('notes.md', 'text/markdown', bytesOf('# Notes')),
  ];
  const headers = { authorization, 'content-type': 'application/json' };
  const body = JSON.stringify({ text: 'LOOK', clientId: 'c1', attachments });
  expect((await fetch(`${path}/messages`, { method: 'POST', headers, body })).status).toBe(202);

  const said = async () => messages(await operator.turns(), 'assistant').map(({ text }) => text);
  await expect.poll(said).toContain('I see a dot.');
  expect(messages(await operator.turns(), 'user')).toMatchObject([{ text: 'LOOK', delivery: 'seen' }]);
  const [image] = seen.filter(({ type }) => type === 'image');
  expect(fieldsOf(image?.source)).toMatchObject({ type: 'base64', media_type: 'image/png' });
  expect(seen.filter(({ type }) => type === 'document')).toMatchObject([
    { title: 'notes.md', source: { type: 'text', data: '# Notes' } },
  ]);
  expect(problems()).toEqual([]);
});
