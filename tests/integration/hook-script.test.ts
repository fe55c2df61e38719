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
let told: [string, ...unknown[]][];
let answer: string;
/** How the agents of the hooks were started. */
let from: unknown[];
/** Of the hook that waits. */
let answerLate: (output: string) => void;
let port: ControlPort;

beforeEach(async () => {
  dataDir = await tempDir();
  told = [];
  from = [];
  answer = '';
  port = await openPort();
});
afterEach(() => port.close());

function openPort(): Promise<ControlPort> {
  const tell =
    (name: string) =>
    (...about: unknown[]) =>
      void told.push([name, ...about]);
  const handlers: ControlHandlers = {
    hook: async ({ event, input, pid, at, from: by, withinMs, signal }: HookCall) => {
      from.push(by);
      told.push(['hook', event, input, pid, at, ...(withinMs === null ? [] : [withinMs])]);
      if (withinMs === null) return answer;
      return await new Promise<string>((resolve) => {
        answerLate = resolve;
        signal.addEventListener('abort', () => told.push(['gone']));
      });
    },
    status: tell('status'),
    obligations: () => [],
    sessionTurn: tell('session-turn'),
    userPrompt: tell('user-prompt'),
    sessionEnd: tell('session-end'),
    hookFatal: tell('hook-fatal'),
    logLevel: new LevelSwitch(undefined),
    toolOwner: async () => ({ at: null, refusal: NOT_FOLLOWED }),
  };
  return ControlPort.open({ file: controlPath(dataDir, 'hooks'), handlers });
}

const startOwn = (event: string, options = {}) => startHook(dataDir, event, options);
const runHook = (event: string, options = {}) => startOwn(event, options).ended;

describe('a hook with a companion', () => {
  test.each(HOOK_EVENTS)('hands %s over as it came, and says nothing', async (event) => {
    const { code, stdout, stderr } = await runHook(event);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' });
    const ran = told[0]?.[4];
    expect(told[0]).toEqual(['hook', event, HOOK_INPUT, process.pid, expect.any(Number)]);
    expect(told.slice(1)).toEqual(event === 'Stop' ? [['status', 'idle', HOOK_INPUT, ran]] : []);
  });

  test.each([
    ['counts seconds only', 'case $1 in +%s) echo 1795170167;; *) echo 1795170167N;; esac', 1_795_170_167_999],
    ['can not be asked', 'exit 1', null],
  ])('hands it over where the clock %s', async (_how, date, at) => {
    const PATH = await pathWith({ date: `#!/bin/sh\n${date}\n` });
    const { code, stdout } = await runHook('Stop', { env: { PATH } });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(told[0]).toEqual(['hook', 'Stop', HOOK_INPUT, process.pid, at]);
  });

  test('prints what the companion answers, and stays busy when it holds the agent', async () => {
    answer = '{"decision":"block","reason":"Mara waits: \\"done?\\" \\\\ %s $HOME"}';
    const { code, stdout } = await runHook('Stop');
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${answer}\n` });
    expect(told.map(([name]) => name)).toEqual(['hook']);
  });

  test('stays busy when it tells the agent something more at the end of its turn', async () => {
    answer = '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"You can listen."}}';
    expect((await runHook('Stop')).stdout).toBe(`${answer}\n`);
    expect(told.map(([name]) => name)).toEqual(['hook']);
  });

  test('takes an input of a megabyte', async () => {
    const prompt = 'x'.repeat(1_000_000);
    await runHook('UserPromptSubmit', { input: JSON.stringify({ ...HOOK_INPUT, prompt }) });
    expect(told[0]?.[2]).toMatchObject({ prompt });
  });

  test('says how the agent was started, where that is a plain word', async () => {
    await runHook('SessionStart', { env: { CLAUDE_CODE_ENTRYPOINT: 'cli' } });
    await runHook('SessionStart', { env: { CLAUDE_CODE_ENTRYPOINT: 'a&within=60' } });
    await runHook('SessionStart');
    expect(from).toEqual(['cli', null, null]);
  });

  test('does not mind a proxy in the environment', async () => {
    const proxy = 'http://127.0.0.1:9';
    await runHook('SessionStart', { env: { http_proxy: proxy, HTTP_PROXY: proxy, ALL_PROXY: proxy } });
    expect(told).toHaveLength(1);
  });

  test('takes no secret to any command line', () => {
    expect(readFileSync(HOOK_SCRIPT, 'utf8')).not.toMatch(/-H .*authorization/i);
    expect(statSync(controlPath(dataDir, 'hooks')).mode & 0o777).toBe(0o600);
  });
});

describe('a hook that waits for an answer', () => {
  const waiting = async (options = {}) => {
    const run = startOwn('PermissionRequest', { withinS: 30, ...options });
    onTestFinished(() => void run.child.kill('SIGKILL'));
    await expect.poll(() => told.length).toBe(1);
    return run;
  };

  test('says how long it does, and prints the answer when it comes', async () => {
    const { ended } = await waiting();
    expect(told[0]).toEqual(['hook', 'PermissionRequest', HOOK_INPUT, process.pid, expect.any(Number), 30_000]);
    const decision = '{"hookSpecificOutput":{"decision":{"behavior":"allow"}}}';
    answerLate(decision);
    expect(await ended).toMatchObject({ code: 0, stdout: decision, stderr: '' });
  });

  test('says nothing when the companion ends, or nobody answers', async () => {
    const { ended } = await waiting();
    await port.close();
    expect(await ended).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test('ends with nothing when the agent ends it, and the companion knows', async () => {
    const { child, ended } = await waiting();
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, stdout: '' });
    await expect.poll(() => told.at(-1)).toEqual(['gone']);
  });

  test('does not outlive its time, whatever its companion does', async () => {
    await port.close();
    const hanging = await listenSending(undefined);
    await writeControlFile(controlPath(dataDir, 'hooks'), { url: hanging.url, secret: 'x', pid: 1 });
    const end = await startOwn('PermissionRequest', { withinS: 1 }).ended;
    expect(end).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });
});

describe('a hook whose companion is not well', () => {
  const silent = { code: 0, stdout: '', stderr: '' };

  test.each(HOOK_EVENTS)('says nothing on %s when there was never one', async (event) => {
    await port.close();
    const end = await runHook(event);
    expect(end).toEqual({ ...silent, signal: null });
  });

  test.each(['Stop', 'SessionStart'])('says nothing on %s when its port is dead', async (event) => {
    await port.close();
    await writeControlFile(controlPath(dataDir, 'hooks'), { url: port.url, secret: port.secret, pid: 1 });
    const end = await runHook(event);
    expect(end).toMatchObject(silent);
  });

  test.each([
    ['takes connections and never answers', undefined],
    ['answers half and hangs', 'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"decision":"block","rea'],
    ['trickles its answer', 'trickle'],
  ])('ends when its port %s', async (_what, says) => {
    await port.close();
    const hanging = await listenSending(says);
    await writeControlFile(controlPath(dataDir, 'hooks'), { url: hanging.url, secret: 'x', pid: 1 });
    const end = await runHook('Stop');
    expect(end).toMatchObject(silent);
  });

  test('says nothing when somebody else has its port', async () => {
    await port.close();
    const other = await listenSending(
      'HTTP/1.1 401 Unauthorized\r\ncontent-length: 6\r\nconnection: close\r\n\r\nnot me',
    );
    await writeControlFile(controlPath(dataDir, 'hooks'), { url: other.url, secret: 'x', pid: 1 });
    expect(await runHook('Stop')).toMatchObject(silent);
  });

  test.each(['', 'garbage', '# http://example.com:80 1', '# http://127.0.0.1:notaport 1'])(
    'says nothing when the control file holds %j',
    async (text) => {
      writeFileSync(controlPath(dataDir, 'hooks'), text);
      expect(await runHook('Stop')).toMatchObject(silent);
      expect(told).toEqual([]);
    },
  );

  test('does nothing when the script is gone', async () => {
    const gone = hookCommand('/nowhere/hook.sh', 'Stop', dataDir);
    expect(spawnSync('/bin/sh', ['-c', gone], { encoding: 'utf8', input: '{}' })).toMatchObject({
      status: 0,
      stdout: '',
      stderr: '',
    });
  });
});

describe('a hook on a poor machine', () => {
  test('does nothing without curl', async () => {
    const PATH = await pathWith({}, ['curl']);
    expect(await runHook('Stop', { env: { PATH } })).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(told).toEqual([]);
  });

  test('does not need jq, and is not hurt by one that fails', async () => {
    const PATH = await pathWith({ jq: '#!/bin/sh\nexit 5\n' });
    await runHook('Stop', { env: { PATH } });
    expect(told.map(([name]) => name)).toEqual(['hook', 'status']);
  });

  test('works without timeout', async () => {
    const PATH = await pathWith({}, ['timeout']);
    await runHook('Stop', { env: { PATH } });
    expect(told.map(([name]) => name)).toEqual(['hook', 'status']);
  });

  test('ends with a curl that hangs', async () => {
    const PATH = await pathWith({ curl: '#!/bin/sh\nexec sleep 3600\n' });
    const end = await runHook('Stop', { env: { PATH } });
    expect(end).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test('is not hurt by a curl that fails', async () => {
    const PATH = await pathWith({ curl: '#!/bin/sh\necho broken\necho broken >&2\nexit 77\n' });
    expect(await runHook('Stop', { env: { PATH } })).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test('tells of its own death when it can not read its input', async () => {
    const PATH = await pathWith({ cat: '#!/bin/sh\nexit 3\n' });
    expect(await runHook('SubagentStop', { env: { PATH } })).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(told).toEqual([['hook-fatal', { hook: 'SubagentStop', error: 'exit 3: read the input' }, {}]]);
  });

  test('posts idle from its trap, whatever failed before', async () => {
    const PATH = await pathWith({ cat: '#!/bin/sh\nexit 3\n' });
    await runHook('Stop', { env: { PATH } });
    expect(told.map(([name]) => name)).toEqual(['hook-fatal', 'status']);
  });

  test('ends when its input never comes', async () => {
    const { child, ended } = startOwn('SessionStart', { input: null });
    onTestFinished(() => void child.stdin?.destroy());
    const end = await ended;
    expect(end).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });
});

describe('a hook that is killed', () => {
  test('posts idle when it has a chance to clean up', async () => {
    const reading = join(dataDir, 'reading');
    const PATH = await pathWith({ cat: `#!/bin/sh\n: >'${reading}'\nexec sleep 60\n` });
    const { child, ended } = startOwn('Stop', { input: null, env: { PATH } });
    await expect.poll(() => existsSync(reading)).toBe(true);
    process.kill(-(child.pid as number), 'SIGTERM');
    expect(await ended).toMatchObject({ code: 0, stdout: '' });
    expect(told.map(([name]) => name)).toContain('status');
  });
});

test('the control file of another agent is found by the environment', async () => {
  const elsewhere = join(await tempDir(), 'x.control');
  mkdirSync(join(elsewhere, '..'), { recursive: true });
  await writeControlFile(elsewhere, { url: port.url, secret: port.secret, pid: 1 });
  await runHook('SessionStart', { env: { INTERLUDE_DATA_DIR: '/nowhere', INTERLUDE_CONTROL: elsewhere } });
  expect(told).toHaveLength(1);
  await runHook('SessionStart', { env: { INTERLUDE_CONTROL: '/dev/null' } });
  expect(told).toHaveLength(1);
  expect(existsSync(elsewhere)).toBe(true);
  expect(elsewhere).not.toContain(delimiter);
});
