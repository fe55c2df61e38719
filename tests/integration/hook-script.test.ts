import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { HOOK_EVENTS, hookCommand } from '@interlude/runner/hooks/hook-entries';
import { controlPath, writeControlFile } from '@interlude/runner/host/control-file';
import { type ControlHandlers, ControlPort, type HookCall, NOT_FOLLOWED } from '@interlude/runner/host/control-port';
import { LevelSwitch } from '@interlude/runner/logger/level-switch';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { HOOK_INPUT, HOOK_SCRIPT, listenSending, pathWith, startHook } from '../support/hook-script';
import { tempDir } from '../support/temp-dir';

let dataDir: string;
let calls: [string, ...unknown[]][];
let answer: string;
/** The start options of the hooks' agents. */
let from: unknown[];
/** The waiting hook. */
let answerWaiting: (output: string) => void;
let port: ControlPort;

beforeEach(async () => {
  dataDir = await tempDir();
  calls = [];
  from = [];
  answer = '';
  port = await openPort();
});
afterEach(() => port.close());

function openPort(): Promise<ControlPort> {
  const recordCall =
    (name: string) =>
    (...about: unknown[]) =>
      void calls.push([name, ...about]);
  const handlers: ControlHandlers = {
    hook: async ({ event, input, pid, at, from: by, withinMs, signal }: HookCall) => {
      from.push(by);
      calls.push(['hook', event, input, pid, at, ...(withinMs === null ? [] : [withinMs])]);
      if (withinMs === null) return answer;
      return await new Promise<string>((resolve) => {
        answerWaiting = resolve;
        signal.addEventListener('abort', () => calls.push(['gone']));
      });
    },
    status: recordCall('status'),
    obligations: () => [],
    sessionTurn: recordCall('session-turn'),
    userPrompt: recordCall('user-prompt'),
    sessionEnd: recordCall('session-end'),
    hookFatal: recordCall('hook-fatal'),
    logLevel: new LevelSwitch(undefined),
    toolOwner: async () => ({ at: null, refusal: NOT_FOLLOWED }),
  };
  return ControlPort.open({ file: controlPath(dataDir, 'hooks'), handlers });
}

const startOwn = (event: string, options = {}) => startHook(dataDir, event, options);
const runHook = (event: string, options = {}) => startOwn(event, options).ended;
/** Runs a hook until it makes these calls: on a busy machine, its short limits may cut some off. */
async function untilCalled(names: string[], event: string, options = {}): Promise<void> {
  const ends: unknown[] = [];
  await expect
    .poll(async () => {
      calls.length = 0;
      const { code, stdout, stderr } = await runHook(event, options);
      ends.push({ code, stdout, stderr });
      return calls.map(([name]) => name);
    })
    .toEqual(names);
  expect(ends).toEqual(ends.map(() => ({ code: 0, stdout: '', stderr: '' })));
}

describe('a hook with a companion', () => {
  test.each(HOOK_EVENTS)('posts the input of %s unchanged, and prints nothing', async (event) => {
    await untilCalled(event === 'Stop' ? ['hook', 'status'] : ['hook'], event);
    const ran = calls[0]?.[4];
    expect(calls[0]).toEqual(['hook', event, HOOK_INPUT, process.pid, expect.any(Number)]);
    expect(calls.slice(1)).toEqual(event === 'Stop' ? [['status', 'idle', HOOK_INPUT, ran]] : []);
  });

  test.each([
    ['counts seconds only', 'case $1 in +%s) echo 1795170167;; *) echo 1795170167N;; esac', 1_795_170_167_999],
    ['fails', 'exit 1', null],
  ])('posts its input when date %s', async (_how, date, at) => {
    const PATH = await pathWith({ date: `#!/bin/sh\n${date}\n` });
    const { code, stdout } = await runHook('Stop', { env: { PATH } });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(calls[0]).toEqual(['hook', 'Stop', HOOK_INPUT, process.pid, at]);
  });

  test('prints the companion’s answer, and stays busy when it holds the agent', async () => {
    answer = '{"decision":"block","reason":"Mara waits: \\"done?\\" \\\\ %s $HOME"}';
    const { code, stdout } = await runHook('Stop');
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${answer}\n` });
    expect(calls.map(([name]) => name)).toEqual(['hook']);
  });

  test('stays busy when the answer adds context at the end of a turn', async () => {
    answer = '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"You can listen."}}';
    expect((await runHook('Stop')).stdout).toBe(`${answer}\n`);
    expect(calls.map(([name]) => name)).toEqual(['hook']);
  });

  test('posts an input of a megabyte', async () => {
    const prompt = 'x'.repeat(1_000_000);
    await runHook('UserPromptSubmit', { input: JSON.stringify({ ...HOOK_INPUT, prompt }) });
    expect(calls[0]?.[2]).toMatchObject({ prompt });
  });

  test('reports how the agent was started when that is a plain word', async () => {
    await runHook('SessionStart', { env: { CLAUDE_CODE_ENTRYPOINT: 'cli' } });
    await runHook('SessionStart', { env: { CLAUDE_CODE_ENTRYPOINT: 'a&within=60' } });
    await runHook('SessionStart');
    expect(from).toEqual(['cli', null, null]);
  });

  test('ignores a proxy in the environment', async () => {
    const proxy = 'http://127.0.0.1:9';
    await runHook('SessionStart', { env: { http_proxy: proxy, HTTP_PROXY: proxy, ALL_PROXY: proxy } });
    expect(calls).toHaveLength(1);
  });

  test('passes no secret to a command line', () => {
    expect(readFileSync(HOOK_SCRIPT, 'utf8')).not.toMatch(/-H .*authorization/i);
    expect(statSync(controlPath(dataDir, 'hooks')).mode & 0o777).toBe(0o600);
  });
});

describe('a hook that waits for an answer', () => {
  const waiting = async (options = {}) => {
    const run = startOwn('PermissionRequest', { withinS: 30, ...options });
    onTestFinished(() => void run.child.kill('SIGKILL'));
    await expect.poll(() => calls.length).toBe(1);
    return run;
  };

  test('announces its timeout, and prints the answer when it arrives', async () => {
    const { ended } = await waiting();
    expect(calls[0]).toEqual(['hook', 'PermissionRequest', HOOK_INPUT, process.pid, expect.any(Number), 30_000]);
    const decision = '{"hookSpecificOutput":{"decision":{"behavior":"allow"}}}';
    answerWaiting(decision);
    expect(await ended).toMatchObject({ code: 0, stdout: decision, stderr: '' });
  });

  test('prints nothing when the companion exits or nobody answers', async () => {
    const { ended } = await waiting();
    await port.close();
    expect(await ended).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test('prints nothing when the agent ends it, and disconnects from the companion', async () => {
    const { child, ended } = await waiting();
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, stdout: '' });
    await expect.poll(() => calls.at(-1)).toEqual(['gone']);
  });

  test('a hook exits at its deadline, whatever its companion does', async () => {
    await port.close();
    const hanging = await listenSending(undefined);
    await writeControlFile(controlPath(dataDir, 'hooks'), { url: hanging.url, secret: 'x', pid: 1 });
    const end = await startOwn('PermissionRequest', { withinS: 1 }).ended;
    expect(end).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });
});

describe('a hook with a failing companion', () => {
  const silent = { code: 0, stdout: '', stderr: '' };

  test.each(HOOK_EVENTS)('prints nothing on %s when there never was one', async (event) => {
    await port.close();
    const end = await runHook(event);
    expect(end).toEqual({ ...silent, signal: null });
  });

  test.each(['Stop', 'SessionStart'])('prints nothing on %s when its port is closed', async (event) => {
    await port.close();
    await writeControlFile(controlPath(dataDir, 'hooks'), { url: port.url, secret: port.secret, pid: 1 });
    const end = await runHook(event);
    expect(end).toMatchObject(silent);
  });

  test.each([
    ['accepts connections and never answers', undefined],
    ['hangs after half an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"decision":"block","rea'],
    ['trickles its answer', 'trickle'],
  ])('exits when its port %s', async (_what, reply) => {
    await port.close();
    const hanging = await listenSending(reply);
    await writeControlFile(controlPath(dataDir, 'hooks'), { url: hanging.url, secret: 'x', pid: 1 });
    const end = await runHook('Stop');
    expect(end).toMatchObject(silent);
  });

  test('prints nothing when another program has its port', async () => {
    await port.close();
    const other = await listenSending(
      'HTTP/1.1 401 Unauthorized\r\ncontent-length: 6\r\nconnection: close\r\n\r\nnot me',
    );
    await writeControlFile(controlPath(dataDir, 'hooks'), { url: other.url, secret: 'x', pid: 1 });
    expect(await runHook('Stop')).toMatchObject(silent);
  });

  test.each(['', 'garbage', '# http://example.com:80 1', '# http://127.0.0.1:notaport 1'])(
    'prints nothing when the control file contains %j',
    async (text) => {
      writeFileSync(controlPath(dataDir, 'hooks'), text);
      expect(await runHook('Stop')).toMatchObject(silent);
      expect(calls).toEqual([]);
    },
  );

  test('does nothing when the script is missing', async () => {
    const missing = hookCommand('/nowhere/hook.sh', 'Stop', dataDir);
    expect(spawnSync('/bin/sh', ['-c', missing], { encoding: 'utf8', input: '{}' })).toMatchObject({
      status: 0,
      stdout: '',
      stderr: '',
    });
  });
});

describe('a hook on a minimal machine', () => {
  test('does nothing without curl', async () => {
    const PATH = await pathWith({}, ['curl']);
    expect(await runHook('Stop', { env: { PATH } })).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(calls).toEqual([]);
  });

  test('works without jq and with one that fails', async () => {
    const PATH = await pathWith({ jq: '#!/bin/sh\nexit 5\n' });
    await untilCalled(['hook', 'status'], 'Stop', { env: { PATH } });
  });

  test('works without timeout', async () => {
    const PATH = await pathWith({}, ['timeout']);
    await untilCalled(['hook', 'status'], 'Stop', { env: { PATH } });
  });

  test('ends a hanging curl', async () => {
    const PATH = await pathWith({ curl: '#!/bin/sh\nexec sleep 3600\n' });
    const end = await runHook('Stop', { env: { PATH } });
    expect(end).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test('exits with 0 when curl fails', async () => {
    const PATH = await pathWith({ curl: '#!/bin/sh\necho broken\necho broken >&2\nexit 77\n' });
    expect(await runHook('Stop', { env: { PATH } })).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test('reports its own death when it can’t read its input', async () => {
    const PATH = await pathWith({ cat: '#!/bin/sh\nexit 3\n' });
    expect(await runHook('SubagentStop', { env: { PATH } })).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(calls).toEqual([['hook-fatal', { hook: 'SubagentStop', error: 'exit 3: read the input' }, {}]]);
  });

  test('posts idle from its trap after any failure', async () => {
    const PATH = await pathWith({ cat: '#!/bin/sh\nexit 3\n' });
    await runHook('Stop', { env: { PATH } });
    expect(calls.map(([name]) => name)).toEqual(['hook-fatal', 'status']);
  });

  test('exits when its input never arrives', async () => {
    const { child, ended } = startOwn('SessionStart', { input: null });
    onTestFinished(() => void child.stdin?.destroy());
    const end = await ended;
    expect(end).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });
});

describe('a hook that is killed', () => {
  test('posts idle when the signal can be trapped', async () => {
    const reading = join(dataDir, 'reading');
    const PATH = await pathWith({ cat: `#!/bin/sh\n: >'${reading}'\nexec sleep 60\n` });
    const { child, ended } = startOwn('Stop', { input: null, env: { PATH } });
    await expect.poll(() => existsSync(reading)).toBe(true);
    process.kill(-(child.pid as number), 'SIGTERM');
    expect(await ended).toMatchObject({ code: 0, stdout: '' });
    expect(calls.map(([name]) => name)).toContain('status');
  });
});

test('the hook finds the control file of its agent through the environment', async () => {
  const elsewhere = join(await tempDir(), 'x.control');
  mkdirSync(join(elsewhere, '..'), { recursive: true });
  await writeControlFile(elsewhere, { url: port.url, secret: port.secret, pid: 1 });
  await runHook('SessionStart', { env: { INTERLUDE_DATA_DIR: '/nowhere', INTERLUDE_CONTROL: elsewhere } });
  expect(calls).toHaveLength(1);
  await runHook('SessionStart', { env: { INTERLUDE_CONTROL: '/dev/null' } });
  expect(calls).toHaveLength(1);
  expect(existsSync(elsewhere)).toBe(true);
  expect(elsewhere).not.toContain(delimiter);
});
