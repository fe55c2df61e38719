import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger } from '@interlude/runner/logger/logger';
import { HooksSource } from '@interlude/runner/sources/hooks/hooks-source';
import { newMirrorState } from '@interlude/runner/sources/hooks/mirror-state';
import { expect, onTestFinished, test } from 'vitest';
import { writeLine } from '@/tests/support/recordings';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { tempDir } from '../../support/temp-dir';

test('forgets an ended session without transcript', async () => {
  const dir = await tempDir();
  const there = join(dir, 'there.jsonl');
  await writeFile(there, '');
  const surroundings = new MemorySourceContext();
  const remembered = {
    ...{ 'ended, gone': { file: join(dir, 'gone.jsonl'), ended: true } },
    ...{ 'ended, there': { file: there, ended: true } },
    ...{ 'open, gone': { file: join(dir, 'late.jsonl'), ended: false } },
  };
  for (const [name, { file, ended }] of Object.entries(remembered)) {
    surroundings.stored.set(`transcript:${name}`, JSON.stringify({ ...newMirrorState(file), ended }));
  }
  surroundings.stored.set('transcript:of no mirror', '7');
  const source = await HooksSource.open({ context: surroundings, logger: createLogger({ agentId: 'a1', dir }) });
  await source.close();
  expect([...surroundings.stored.keys()]).toEqual(['transcript:ended, there', 'transcript:open, gone']);
});

test('repeats the hint about listening after a missed message', async () => {
  const dir = await tempDir();
  const [sessionId, file] = ['s', join(dir, 's.jsonl')];
  const logger = createLogger({ agentId: 'a1', dir });
  const surroundings = new MemorySourceContext();
  const source = await HooksSource.open({ context: surroundings, logger, offersToListen: true });
  await source.start();
  onTestFinished(() => source.close());
  const hook = async (event: string, more: object = {}) =>
    await source.control.hook({
      // A session starts before its first prompt: lines of the same millisecond count as older.
      at: event === 'SessionStart' ? Date.now() - 100 : null,
      ...{ event, pid: null, withinMs: null, signal: new AbortController().signal },
      input: { session_id: sessionId, transcript_path: file, hook_event_name: event, ...more },
    });
  const line = (more: object) =>
    writeLine({ file, text: JSON.stringify({ uuid: randomUUID(), entrypoint: 'cli', ...more }) });
  const isOpen = () => surroundings.openWork(sessionId).turn !== null;
  const begins = async (text: string) => {
    await hook('UserPromptSubmit', { prompt: text });
    line({ type: 'user', message: { role: 'user', content: text }, origin: { kind: 'human' } });
    await expect.poll(isOpen).toBe(true);
  };
  const breaksOff = async () => {
    const content = [{ type: 'text', text: '[Request interrupted by user]' }];
    line({ type: 'user', message: { role: 'user', content } });
    await expect.poll(isOpen).toBe(false);
  };
  const offered = () => hook('Stop', { stop_hook_active: false });

  await hook('SessionStart', { source: 'startup' });
  await begins('Build it');
  expect(await offered()).toContain('additionalContext');
  expect((await offered()) || '').not.toContain('additionalContext');
  await breaksOff();
  await begins('Once more');
  const body = { messageId: 'm1', text: 'How far?', from: { kind: 'person' as const, id: 'operator' } };
  const outcome = source.deliver(
    { type: 'message', id: 'c1', sessionId, createdAt: Date.now(), expiresAt: Date.now() + 60_000, body },
    false,
  );
  await breaksOff();
  expect(await outcome).toMatchObject({ state: 'failed', reason: expect.stringMatching(/its turn ended before/) });
  await begins('And again');
  expect(await offered()).toContain('additionalContext');
});
