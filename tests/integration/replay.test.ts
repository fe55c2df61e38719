import { readdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EventRecord } from '@interlude/protocol/envelope';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli, startCli } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { FaultServer, refusal } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';

const recording = fileURLToPath(new URL('../fixtures/recordings/bash-bg-min.jsonl', import.meta.url));

let server: FaultServer;
let dataDir: string;
let env: Record<string, string>;

beforeEach(async () => {
  server = await FaultServer.start();
  dataDir = join(await tempDir(), 'data');
  env = { INTERLUDE_DATA_DIR: dataDir };
});
afterEach(() => server.close());

const atOnce = (...args: string[]) => ['replay', recording, '--url', server.url, '--speed', 'max', ...args];
const replay = (...args: string[]) => callCli(atOnce(...args), env);

function eventsOf(sessionId: string): EventRecord[] {
  return server.ledger.records.filter(
    (record): record is EventRecord => record.kind === 'event' && record.sessionId === sessionId,
  );
}

/** Every session with events. */
function sessionsOf(): Set<string> {
  return new Set(server.ledger.records.flatMap(({ sessionId }) => (typeof sessionId === 'string' ? [sessionId] : [])));
}

function linesOf(agentId: string): string[] {
  return server.ledger.records.flatMap((record) =>
    record.kind === 'log' && record.agentId === agentId ? [String(record.log.message)] : [],
  );
}

/** Events without the fields that differ between runs: times and session ids. */
function contentOf(sessionId: string): string[] {
  return eventsOf(sessionId).map(({ event }) => {
    const { timestamp: _, ...rest } = event;
    return JSON.stringify(rest);
  });
}

describe('replay', () => {
  test('exits with 0 and the session’s address once all records are acknowledged', async () => {
    const end = await runCli(atOnce('--session', 's1', '--agent', 'a1'), env);
    expect(end).toEqual({ exitCode: 0, stdout: `${server.url}/sessions/s1\n`, stderr: '' });
    const types = eventsOf('s1').map((record) => record.event.type);
    expect(types.filter((type) => type === 'RUN_STARTED')).toHaveLength(2);
    expect(types).toContain('TEXT_MESSAGE_START');
    expect(new Set(server.ledger.records.map((record) => record.agentId))).toEqual(new Set(['a1']));
  });

  test('reports an invalid log level once on stderr and once in the log, and uses the default', async () => {
    env.INTERLUDE_LOG_LEVEL = 'verbose';
    const words = 'INTERLUDE_LOG_LEVEL is "verbose", not one of debug, info, warn, error, fatal; using info';
    const end = await replay('--session', 's1', '--agent', 'a1');
    expect([end.exitCode, end.stderr]).toEqual([0, `interlude: ${words}\n`]);
    expect(linesOf('a1').filter((line) => line === words)).toHaveLength(1);
  });

  test('adds a recording to a named session once, however often it is replayed', async () => {
    await replay('--session', 's1');
    const before = server.ledger.records.length;
    const again = await replay('--session', 's1');
    expect(again.exitCode).toBe(0);
    expect(again.stderr).toContain('session s1 already has this recording');
    expect(server.ledger.records).toHaveLength(before);
  });

  test('creates a session for each unnamed replay, and leaves no file behind', async () => {
    await replay();
    await replay();
    const sessions = sessionsOf();
    expect(sessions.size).toBe(2);
    expect([...sessions].every((id) => String(id).startsWith('bash-bg-min-'))).toBe(true);
    expect(readdirSync(join(dataDir, 'outboxes'))).toEqual([]);
  });

  test('logs its progress, each turn and each task once, across a resume', async () => {
    server.behaviour = () => ({ kind: 'answer', ...refusal(401, 'unauthenticated', {}) });
    await replay('--session', 's1', '--agent', 'a1');
    server.behaviour = () => ({ kind: 'none' });
    expect((await replay('--session', 's1', '--agent', 'a1')).exitCode).toBe(0);
    const lines = linesOf('a1');
    expect(lines[0]).toBe('playing recording bash-bg-min as session s1');
    const count = (beginning: string) => lines.filter((line) => line.startsWith(beginning)).length;
    expect([
      count('turn started: answering'),
      count('turn started: woken by the end of task'),
      count('turn ended'),
    ]).toEqual([1, 1, 2]);
    expect(lines.some((line) => /^task \w+ “.+” (completed|failed), exit \d+ after \d/.test(line))).toBe(true);
    const turn = server.ledger.records.find((record) => record.kind === 'log' && record.log.component === 'turns');
    expect(turn?.occurredAt).toBe(eventsOf('s1').find(({ event }) => event.type === 'RUN_STARTED')?.occurredAt);
  });

  test('sends the recording from its beginning to a server that lost its database', async () => {
    await replay('--session', 's1');
    const once = contentOf('s1');
    server.ledger.forget();
    server.ledger.records.length = 0;
    expect((await replay('--session', 's1')).exitCode).toBe(0);
    expect(contentOf('s1')).toEqual(once);
    expect(server.ledger.lost).toBe(0);
  });

  test('prints how to resume when it is interrupted, and resumes', async () => {
    const args = ['replay', recording, '--url', server.url, '--speed', '1'];
    const run = startCli(args, env);
    await server.until(() => server.requests.length > 0);
    run.process.kill('SIGINT');
    expect(await run.ended).toMatchObject({
      exitCode: 130,
      stderr: expect.stringContaining('run the same command to resume'),
    });
    expect((await replay()).exitCode).toBe(0);
    expect(sessionsOf().size).toBe(1);
  });

  test('finds a local server and the runners’ token, or an older server’s shared one', async () => {
    await mkdir(dataDir, { recursive: true });
    await writeFile(join(dataDir, 'server.json'), JSON.stringify({ url: server.url, pid: 1 }));
    await writeFile(join(dataDir, 'token'), 'the-token-of-this-machine\n');
    const end = await callCli(['replay', recording, '--speed', 'max'], env);
    expect(end.exitCode).toBe(0);
    expect(server.requests[0]?.authorization).toBe('Bearer the-token-of-this-machine');
    await writeFile(join(dataDir, 'runner-token'), 'the-token-of-its-runners\n');
    expect((await callCli(['replay', recording, '--speed', 'max'], env)).exitCode).toBe(0);
    expect(server.requests.at(-1)?.authorization).toBe('Bearer the-token-of-its-runners');
  });

  test('exits at once on a refused token, and keeps its records for the next run', async () => {
    server.behaviour = () => ({ kind: 'answer', ...refusal(401, 'unauthenticated', {}) });
    const end = await callCli(atOnce('--session', 's1'), { ...env, INTERLUDE_TOKEN: 'a-wrong-token-of-the-test' });
    expect(end.exitCode).toBe(1);
    expect(end.stderr).toMatch(
      /^interlude: .*unauthenticated.* stay in the outbox.*; restart with another token[^\n]+\n$/,
    );
    server.behaviour = () => ({ kind: 'none' });
    expect((await replay('--session', 's1')).exitCode).toBe(0);
    expect(eventsOf('s1').filter((record) => record.event.type === 'RUN_STARTED')).toHaveLength(2);
  });

  describe('replay with quarantined records', () => {
    const quarantine = (isRejected: (seq: number) => boolean) => {
      server.behaviour = ({ seqs }) => {
        const rejected = seqs
          .filter(isRejected)
          .map((seq) => ({ seq, code: 'session_of_another_agent', message: 's1 belongs to another agent' }));
        const body = { ackedSeq: seqs.at(-1), accepted: 0, duplicates: 0, rejected, position: '1' };
        return { kind: 'answer', status: 200, body };
      };
    };

    test('exits with 1 and one line when all are quarantined', async () => {
      quarantine((seq) => seq > 1);
      const end = await replay('--session', 's1');
      expect(end).toMatchObject({ exitCode: 1, stdout: '' });
      expect(end.stderr).toBe(
        `interlude: ${server.url} quarantined every record: s1 belongs to another agent; name another --session or --agent\n`,
      );
    });

    test('exits with 0 and their number when others were accepted', async () => {
      quarantine((seq) => seq === 2 || seq === 3);
      const end = await replay('--session', 's1');
      expect(end).toMatchObject({ exitCode: 0, stdout: `${server.url}/sessions/s1\n` });
      expect(end.stderr).toMatch(/^interlude: 2 of \d+ records were quarantined; first reason: s1 belongs[^\n]+\n$/);
    });
  });

  test('replay waits for a late server, and says so', async () => {
    await server.close();
    const run = startCli(['replay', recording, '--url', server.url, '--speed', 'max'], env);
    const warning = new Promise<string>((resolve) =>
      run.process.stderr?.once('data', (chunk) => resolve(String(chunk))),
    );
    expect(await warning).toMatch(/can't be reached \(ECONNREFUSED\); sending unsent records/);
    await server.listen();
    expect((await run.ended).exitCode).toBe(0);
  });

  test.each([
    ['no command', [], 2, 'Usage: '],
    ['an unknown command', ['dance'], 2, 'unknown command "dance"'],
    ['no recording', ['replay'], 2, 'name one recording'],
    ['an unknown option', ['replay', recording, '--loud'], 2, "Unknown option '--loud'"],
    ['a speed of zero', ['replay', recording, '--speed', '0'], 2, '--speed'],
    ['an address that is no URL', ['replay', recording, '--url', 'ftp://there'], 2, 'not an http address'],
    ['a missing file', ['replay', 'nowhere.jsonl'], 1, 'nowhere.jsonl: no such file'],
    ['a file that is no recording', ['replay', 'package.json'], 1, 'not a recording: line 1'],
    ['help', ['--help'], 0, 'npx interlude <command>'],
    ['help for a command', ['replay', '--help'], 0, 'npx interlude replay <recording.jsonl>'],
  ])('replay handles %s with a message and its exit code', async (_name, args, exitCode, words) => {
    const end = await callCli(args, env);
    expect(end.exitCode).toBe(exitCode);
    expect(end.stdout + end.stderr).toContain(words);
    if (exitCode !== 0) expect(end.stderr.trim().split('\n').length).toBeLessThanOrEqual(1);
  });
});
