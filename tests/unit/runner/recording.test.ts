import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Recorder, readRecording } from '@interlude/runner/cli/recording';
import { Redactor } from '@interlude/runner/logger/redactor';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

const TOKEN = 'ghp_0123456789abcdefghijABCDEFGHIJ012345';

test('records each frame once, in order, readable by readRecording', async () => {
  const file = join(await tempDir(), 'run.jsonl');
  const recorder = Recorder.open(file, new Redactor());
  recorder.write({ dir: 'out', msg: { method: 'initialize' } });
  recorder.write({ dir: 'in', msg: { result: 'é' } });
  recorder.close();
  const { lines, kind } = await readRecording(file, 'claude');
  expect(kind).toBe('claude');
  expect(lines.map(({ fields: { dir, msg } }) => [dir, msg])).toEqual([
    ['out', { method: 'initialize' }],
    ['in', { result: 'é' }],
  ]);
  expect(lines.every(({ at }, index) => at >= (lines[index - 1]?.at ?? 0))).toBe(true);
});

test('redacts secrets in texts, in names, under secret names and from the command line', async () => {
  const file = join(await tempDir(), 'run.jsonl');
  const redactor = new Redactor();
  redactor.addSecret('the-dashboards-own-token');
  const recorder = Recorder.open(file, redactor);
  const msg = {
    text: `use ${TOKEN} for it`,
    env: [{ name: 'A', value: 'B' }, { [TOKEN]: 1 }],
    api_key: 'correct-horse-battery-staple-1',
    url: 'http://127.0.0.1/?token=the-dashboards-own-token',
  };
  recorder.write({ dir: 'in', msg });
  recorder.close();
  const text = await readFile(file, 'utf8');
  for (const secret of [TOKEN, 'correct-horse-battery-staple-1', 'the-dashboards-own-token']) {
    expect(text).not.toContain(secret);
  }
  const { msg: kept } = JSON.parse(text) as { msg: typeof msg };
  expect(kept.text).toMatch(/^use \[redacted: [\w-]+\] for it$/);
  expect(kept.env[0]).toEqual({ name: 'A', value: 'B' });
});

test('creates a private file and never overwrites one', async () => {
  const file = join(await tempDir(), 'run.jsonl');
  Recorder.open(file, new Redactor()).close();
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(() => Recorder.open(file, new Redactor())).toThrow('it already exists; name another file');
});

test('records frames of any depth', async () => {
  const file = join(await tempDir(), 'run.jsonl');
  const recorder = Recorder.open(file, new Redactor());
  let deep: object = { token: TOKEN };
  for (let depth = 0; depth < 100_000; depth += 1) deep = { a: deep };
  recorder.write({ dir: 'in', msg: deep });
  recorder.write({ dir: 'in', msg: 'after it' });
  recorder.close();
  const text = await readFile(file, 'utf8');
  expect(
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).dir),
  ).toEqual(['in', 'in']);
  expect(text).not.toContain(TOKEN);
});

test('explains in one line why a file can’t be created', async () => {
  const path = join(await tempDir(), 'nowhere', 'run.jsonl');
  expect(() => Recorder.open(path, new Redactor())).toThrow(`to ${path}: its folder does not exist; create it first`);
});
