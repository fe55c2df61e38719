import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_LOG_MESSAGE_BYTES } from '@interlude/protocol/limits';
import { truncateLogMessage, utf8Length } from '@interlude/protocol/text';
import { hookFailure, logHookFailure } from '@interlude/runner/host/control-port';
import { LevelSwitch, parseLevel } from '@interlude/runner/logger/level-switch';
import type { LogEntry } from '@interlude/runner/logger/logger';
import { createLogger, fileNameOf, LogFile, logLine } from '@interlude/runner/logger/logger';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { tempDir } from '../../support/temp-dir';

const ISO = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

describe('a line of the log', () => {
  test('has time, level, component and message', () => {
    const at = Date.UTC(2026, 10, 20, 10, 26, 44, 590);
    expect(logLine({ at, level: 'info', component: 'outbox', message: 'drained' })).toBe(
      '[2026-11-20T10:26:44.590Z] INFO  [outbox] drained',
    );
  });

  test('is one line without control characters', () => {
    const entry = {
      at: 0,
      level: 'fatal',
      component: 'a\nb',
      message: '\x1b[31mred\x1b[0m\r\n  two\u2028three\x07',
    } as const;
    expect(logLine(entry)).toBe('[1970-01-01T00:00:00.000Z] FATAL [a ⏎ b] red ⏎ two ⏎ three');
    fc.assert(
      fc.property(fc.string({ unit: fc.nat(0x10ffff).map((point) => String.fromCodePoint(point)) }), (message) => {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be left
        expect(logLine({ at: 0, level: 'info', component: 'c', message })).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
      }),
    );
  });
});

describe('the file of an agent', () => {
  test('has a different name for each id, even for similar ones', () => {
    expect(fileNameOf('agent-1')).toBe('agent-1');
    const alike = [
      'a/b',
      'a_b',
      'a:b',
      'a\\b',
      'A_b',
      'ä_b',
      `${'x'.repeat(300)}1`,
      `${'x'.repeat(300)}2`,
      '.',
      '..',
      '',
    ];
    const names = alike.map(fileNameOf);
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(alike.length);
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,179}$/);
  });

  test('is rotated when it grows too large', async () => {
    const file = join(await tempDir(), 'a.log');
    const log = new LogFile(file, { maxBytes: 100, keep: 2 });
    for (let index = 0; index < 40; index += 1) log.write(`line ${String(index).padStart(4, '0')}`);
    log.close();
    expect(readdirSync(join(file, '..')).sort()).toEqual(['a.log', 'a.log.1', 'a.log.2']);
    const kept = ['a.log.2', 'a.log.1', 'a.log'].map((name) => readFileSync(join(file, '..', name), 'utf8')).join('');
    const lines = kept.trim().split('\n');
    expect(lines.at(-1)).toBe('line 0039');
    expect(lines).toEqual(
      Array.from({ length: lines.length }, (_, index) => `line ${String(40 - lines.length + index).padStart(4, '0')}`),
    );
    expect(statSync(`${file}.1`).size).toBeLessThanOrEqual(100);
  });

  test('is appended to after a restart, and created again when removed', async () => {
    const file = join(await tempDir(), 'a.log');
    new LogFile(file).write('one');
    const log = new LogFile(file);
    log.write('two');
    expect(readFileSync(file, 'utf8')).toBe('one\ntwo\n');
    renameSync(file, `${file}.taken`);
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 2_000);
    log.write('three');
    vi.restoreAllMocks();
    expect(readFileSync(file, 'utf8')).toBe('three\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe('a logger', () => {
  test('writes lines at or above its level to the file and as records', async () => {
    const dir = await tempDir();
    const records: LogEntry[] = [];
    const logger = createLogger({ agentId: 'a', dir, level: 'warn', onRecord: (entry) => records.push(entry) });
    const outbox = logger.child('outbox');
    outbox.info('not this');
    outbox.warn('this\nand this');
    logger.fatal('and this');
    const text = readFileSync(logger.file, 'utf8');
    expect(text).toMatch(
      new RegExp(`^\\[${ISO}\\] WARN {2}\\[outbox\\] this ⏎ and this\\n\\[${ISO}\\] FATAL \\[runner\\] and this\\n$`),
    );
    expect(records.map(({ level, component, message }) => [level, component, message])).toEqual([
      ['warn', 'outbox', 'this ⏎ and this'],
      ['fatal', 'runner', 'and this'],
    ]);
  });

  test('redacts secrets from the file and the records, and counts them', async () => {
    const dir = await tempDir();
    const records: LogEntry[] = [];
    const logger = createLogger({ agentId: 'a', dir, onRecord: (entry) => records.push(entry) });
    logger.redactor.addSecret('the-token-of-the-dashboard');
    const message = 'DB_PASSWORD=hunter2\nsent with the-token-of-the-dashboard';
    logger.child('agent').info(message);
    logger.child('agent').info('nothing to hide');
    const [first, second] = records;
    expect(first?.message).toBe('DB_PASSWORD=[redacted: password] ⏎ sent with [redacted: interlude-token]');
    expect([first?.redacted, second?.redacted]).toEqual([2, undefined]);
    expect(readFileSync(logger.file, 'utf8')).toContain(first?.message as string);
    expect(readFileSync(logger.file, 'utf8')).not.toMatch(/hunter2|the-token/);
  });

  test('truncates a line once and says how much is missing', async () => {
    const dir = await tempDir();
    const records: LogEntry[] = [];
    const logger = createLogger({ agentId: 'a', dir, onRecord: (entry) => records.push(entry) });
    logger.info('abc\n'.repeat(30_000));
    const message = records[0]?.message ?? '';
    expect(utf8Length(message)).toBeLessThanOrEqual(MAX_LOG_MESSAGE_BYTES);
    expect(truncateLogMessage(message)).toBe(message);
    expect(message).toMatch(/^abc ⏎ abc ⏎ .*… \[\d{2,3},\d{3} bytes cut\]$/s);
    expect(message.match(/bytes cut/g)).toHaveLength(1);
    expect(readFileSync(logger.file, 'utf8')).toContain(message);
  });

  test('passes insights to the record at every level', async () => {
    const dir = await tempDir();
    const records: LogEntry[] = [];
    const logger = createLogger({ agentId: 'a', dir, level: 'fatal', onRecord: (entry) => records.push(entry) });
    logHookFailure(logger, hookFailure('Stop', 'exit 3: TOKEN=abcdef123456'), 's1');
    logHookFailure(logger, hookFailure(' ', ''), null);
    expect(records).toMatchObject([
      {
        level: 'fatal',
        component: 'hook:Stop',
        message: 'exit 3: TOKEN=[redacted: token]',
        redacted: 1,
        insight: { signal: 'hook_fatal', outcome: 'failed', source: 'Stop', sessionId: 's1' },
      },
      {
        component: 'hook:unknown',
        message: '(no detail)',
        insight: { signal: 'hook_fatal', outcome: 'failed', source: 'unknown' },
      },
    ]);
    expect(records[1]?.insight).not.toHaveProperty('sessionId');
  });

  test('changes its level for all children at once, and resets it', async () => {
    vi.useFakeTimers();
    const dir = await tempDir();
    const seen: string[] = [];
    const logger = createLogger({ agentId: 'a', dir, level: undefined, onRecord: ({ message }) => seen.push(message) });
    const child = logger.child('c');
    child.debug('early');
    logger.level.set('debug', { ttlMs: 1_000, by: 'a person' });
    child.debug('while it lasts');
    await vi.advanceTimersByTimeAsync(1_001);
    child.debug('late');
    vi.useRealTimers();
    expect(seen).toEqual([
      'log level info → debug (a person)',
      'while it lasts',
      'log level debug → info (time-limit)',
    ]);
  });

  test('prints severe lines on stderr when the file fails, without throwing', async () => {
    const dir = join(await tempDir(), 'a-file');
    writeFileSync(dir, 'where the folder should be');
    const stderr: string[] = [];
    const logger = createLogger({ agentId: 'a', dir, level: 'debug', stderr: (text) => stderr.push(text) });
    logger.info('nothing grave');
    logger.error('an error');
    logger.child('x').fatal('the end');
    expect(stderr).toHaveLength(2);
    expect(stderr[0]).toMatch(/ERROR \[runner\] an error \(not in .*: E(EXIST|NOTDIR)\)\n$/);
    expect(stderr[1]).toContain('FATAL [x] the end');
  });

  test('writes again when the file works again', async () => {
    const parent = await tempDir();
    const dir = join(parent, 'logs');
    writeFileSync(dir, '');
    const logger = createLogger({ agentId: 'a', dir, stderr: () => undefined });
    logger.error('lost to the file');
    renameSync(dir, join(parent, 'away'));
    mkdirSync(dir);
    chmodSync(dir, 0o700);
    logger.error('back');
    expect(readFileSync(logger.file, 'utf8')).toMatch(/back\n$/);
  });

  test('survives an onRecord that throws', async () => {
    const dir = await tempDir();
    const thrower = () => {
      throw new Error('the outbox is stopped');
    };
    const stderr: string[] = [];
    const logger = createLogger({ agentId: 'a', dir, onRecord: thrower, stderr: (text) => stderr.push(text) });
    logger.error('kept in the file');
    expect(readFileSync(logger.file, 'utf8')).toContain('kept in the file');
    logger.fatal('told as well');
    expect(stderr[0]).toContain('told as well');
  });
});

test('uses the switch, else the environment, else info', () => {
  expect(new LevelSwitch(undefined).get()).toBe('info');
  expect(new LevelSwitch('nonsense').get()).toBe('info');
  const level = new LevelSwitch(' WARN ');
  expect(level.get()).toBe('warn');
  expect(level.set('fatal', { by: 'test' })).toEqual({ level: 'fatal', previous: 'warn', by: 'test' });
  expect(level.set(null, { by: 'test' })).toEqual({ level: 'warn', previous: 'fatal', by: 'test' });
  expect(parseLevel(7)).toBeNull();
});
