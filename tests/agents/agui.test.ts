import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settled, startAgUiSource } from '../support/agui-stage';
import { agentsFolder, installedAgents } from '../support/real-agents.mjs';

/** Runs the source against a real AG-UI server: CopilotKit's BuiltInAgent with a scripted model. */
describe.skipIf(!installedAgents().includes('copilotkit'))('CopilotKit’s BuiltInAgent', () => {
  let server: ChildProcess;
  let url = '';
  let sessions = 0;
  beforeAll(async () => {
    const folder = join(agentsFolder(), 'copilotkit');
    const program = fileURLToPath(new URL('../support/agui-copilotkit.mjs', import.meta.url));
    server = spawn(process.execPath, [program, folder], { stdio: ['pipe', 'pipe', 'ignore'] });
    const [line] = server.stdout === null ? [''] : ((await once(server.stdout, 'data')) as [Buffer]);
    url = line.toString().trim();
  });
  afterAll(async () => {
    server.stdin?.end();
    if (server.exitCode === null) await once(server, 'exit');
  });
  const stage = () => startAgUiSource({ url, sessionId: `s${++sessions}` });

  test('answers with the conversation’s context and runs its tools', async () => {
    const { say, turns, lines } = await stage();
    await say('hello');
    await say('LIST the files');
    await say('again');
    await settled(() => turns()[2]?.end).toBe('success');
    expect(turns().map(({ asked, said }) => [asked, said.join('')])).toEqual([
      [['m1'], 'You said: hello.'],
      [['m2'], 'I look.The tool said ["/src/a.txt","/src/b.txt"].'],
      [['m3'], 'You said: hello, LIST the files, again.'],
    ]);
    expect(lines().filter((line) => line.startsWith('TOOL_CALL_RESULT'))).toHaveLength(1);
  });

  test('asks before a deploy and continues with the answer', async () => {
    const { say, turns, requests, allow } = await stage();
    await say('DEPLOY it');
    await settled(requests).toHaveLength(1);
    const waiting = say('And then?');
    expect(await allow(requests()[0] ?? '')).toEqual({ state: 'done' });
    expect(await waiting).toEqual({ state: 'delivered' });
    await settled(() => turns()[2]?.end).toBe('success');
    expect(turns().map(({ said }) => said.join(''))).toEqual([
      '',
      'The tool said {"approved":true}.',
      'You said: DEPLOY it, And then?.',
    ]);
    expect(requests()).toEqual([]);
  });

  test('accepts a message right after an interrupt', async () => {
    const { say, turns, turn, interrupt } = await stage();
    await say('LONG one');
    await settled(() => turns()[0]?.said.length).toBeGreaterThan(3);
    expect(await interrupt(turn()?.runId)).toEqual({ state: 'done' });
    await say('still there?');
    await settled(() => turns()[1]?.end).toBe('success');
    expect(turns()[0]?.end).toBe('cancelled');
  });

  test('fails a turn with the model’s error and shows unsupported features on its page', async () => {
    const { say, turns, trouble, lines } = await stage();
    await say('FAIL now');
    await settled(() => turns()[0]?.end).toBe('failed');
    expect(lines().join('\n')).toContain('the model refuses');
    await settled(trouble).toContain('no stream of events at');
  });
});
