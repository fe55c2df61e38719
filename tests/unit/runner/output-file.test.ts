import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_TASK_OUTPUT_BYTES } from '@interlude/protocol/limits';
import { MOST_LIVE, NotAFileError, OUTPUT_START, type ReadMode, readOutput } from '@interlude/runner/host/task-outputs';
import { Redactor } from '@interlude/runner/logger/redactor';
import { describe, expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

/** A growing file with its reader. */
async function follow() {
  const file = join(await tempDir(), 't.output');
  let place = OUTPUT_START;
  const redactor = new Redactor();
  return {
    file,
    write: (text: string | Uint8Array) => appendFile(file, text),
    /** Reads the new content. */
    async read(reach: ReadMode = 'live') {
      const read = await readOutput(file, place, reach, redactor);
      place = read.position;
      return read.pieces;
    },
  };
}

const text = (pieces: readonly { text: string }[]) => pieces.map((piece) => piece.text).join('');

describe('the output file of a running task', () => {
  test('is read line by line, and an unfinished line on request', async () => {
    const output = await follow();
    await output.write('one\ntwo\nthr');
    expect(await output.read()).toEqual([{ from: 0, to: 8, text: 'one\ntwo\n', redacted: 0 }]);
    expect(await output.read()).toEqual([]);
    expect(await output.read('rest')).toEqual([{ from: 8, to: 11, text: 'thr', redacted: 0 }]);
    await output.write('ee\n');
    expect(await output.read()).toEqual([{ from: 11, to: 14, text: 'ee\n', redacted: 0 }]);
  });

  test('is read in complete characters, wherever a write ends', async () => {
    const output = await follow();
    const bytes = Buffer.from('a😀');
    for (const byte of bytes) {
      await output.write(Buffer.from([byte]));
      expect(text(await output.read('rest'))).not.toContain('\ufffd');
    }
    await output.write('\n');
    expect(text(await output.read())).toBe('\n');
  });

  test('yields its newest lines under load, and the rest when quiet', async () => {
    const output = await follow();
    const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join('');
    await output.write(lines);
    const [piece, ...others] = await output.read();
    expect(others).toEqual([]);
    expect(piece?.to).toBe(lines.length);
    expect(piece?.text.length).toBeLessThanOrEqual(MOST_LIVE);
    expect(piece?.text.length).toBeGreaterThan(MOST_LIVE - 100);
    expect(piece?.text).toMatch(/^line \d+\n/);
    expect(lines.endsWith(piece?.text ?? '?')).toBe(true);
    const kept = await output.read('kept');
    // starts over, before the emitted piece
    expect(kept[0]?.from).toBeLessThan(piece?.from ?? 0);
    expect(text(kept).length).toBeLessThanOrEqual(MAX_TASK_OUTPUT_BYTES);
    expect(lines.endsWith(text(kept))).toBe(true);
    expect(await output.read('kept')).toEqual([]);
  });

  test('yields nothing without new content', async () => {
    const output = await follow();
    await output.write(`${'x'.repeat(799)}\n`.repeat(1_000));
    expect(await output.read('kept')).not.toEqual([]);
    expect(await output.read('kept')).toEqual([]);
    expect(await output.read('end')).toEqual([]);
  });

  test('is skipped forward when far behind', async () => {
    const output = await follow();
    await output.write('begin\n');
    await output.read();
    await output.write(`${'x'.repeat(1023)}\n`.repeat(1_000));
    const kept = await output.read('end');
    expect(kept[0]?.from).toBeGreaterThan(700_000);
    expect(text(kept).length).toBeLessThanOrEqual(MAX_TASK_OUTPUT_BYTES);
    expect(text(kept).length).toBeGreaterThan(MAX_TASK_OUTPUT_BYTES - 2_048);
  });

  test('starts over when truncated or replaced', async () => {
    const output = await follow();
    await output.write('one\ntwo\n');
    await output.read();
    await writeFile(output.file, 'new\n');
    expect(await output.read()).toEqual([{ from: 0, to: 4, text: 'new\n', redacted: 0 }]);
    await writeFile(`${output.file}.other`, 'another\none\n');
    await rename(`${output.file}.other`, output.file);
    expect(await output.read()).toEqual([{ from: 0, to: 12, text: 'another\none\n', redacted: 0 }]);
    // rewritten with the same size or longer, and with a reused inode
    for (const text of ['written anew\n', 'anew, and longer than before\n']) {
      await writeFile(output.file, text);
      expect(await output.read()).toMatchObject([{ from: 0, text }]);
    }
    await rm(output.file);
    await output.write('quite another file, longer than all those before\n');
    expect(await output.read()).toMatchObject([{ from: 0 }]);
  });

  test('yields any bytes as text, once', async () => {
    const output = await follow();
    const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * 7 + (index >> 3)) & 0xff));
    for (let at = 0; at < bytes.length; at += 333) {
      await output.write(bytes.subarray(at, at + 333));
      await output.read('rest');
    }
    await output.read('end');
    await output.write('x');
    const [piece] = await output.read('end');
    expect(piece).toEqual({ from: bytes.length, to: bytes.length + 1, text: 'x', redacted: 0 });
  });

  test.each([
    ['a link', (file: string, other: string) => symlink(other, file), 'ELOOP'],
    ['a folder', (file: string) => mkdir(file), NotAFileError.name],
    ['a pipe', async (file: string) => void execFileSync('mkfifo', [file]), NotAFileError.name],
  ])('is not read when it is %s', async (_what, make, why) => {
    const output = await follow();
    const other = `${output.file}.secret`;
    await writeFile(other, 'root:x:0:0\n');
    await make(output.file, other);
    const error = (await output.read().catch((thrown: unknown) => thrown)) as Error & { code?: string };
    expect(error.code ?? error.name).toBe(why);
  });
});

const TOKEN = `gh${'p_'}${'a1B2'.repeat(9)}`;

describe('secrets in an output', () => {
  test('are redacted, and everything else is unchanged', async () => {
    const output = await follow();
    await output.write(`\u001b[32mok\u001b[0m token ${TOKEN} done\n`);
    const [piece] = await output.read();
    expect(piece).toMatchObject({ text: '\u001b[32mok\u001b[0m token [redacted: github-token] done\n', redacted: 1 });
  });

  test('are recognized despite color codes in or before them', async () => {
    const output = await follow();
    await output.write(`${TOKEN.slice(0, 12)}\u001b[1;31m${TOKEN.slice(12)}\u001b[m end\n`);
    await output.write('\u001b[01;31mAPI_KEY\u001b[m\u001b[K=\u001b[33mhunter2hunter2hunter2\u001b[0m\n');
    const said = text(await output.read());
    expect(said).not.toContain(TOKEN.slice(12));
    expect(said).not.toContain('hunter2');
    expect(said).toContain('\u001b[01;31mAPI_KEY\u001b[m');
  });

  test('are redacted when written in two pieces or read from the middle', async () => {
    const output = await follow();
    const key = [
      '-----BEGIN RSA PRIVATE KEY-----',
      ...Array(30).fill('b64line'.repeat(9)),
      '-----END RSA PRIVATE KEY-----',
    ];
    await output.write(`before\n${key.slice(0, 12).join('\n')}\n`);
    let said = text(await output.read());
    await output.write(`${key.slice(12).join('\n')}\nafter\n`);
    said += text(await output.read());
    expect(said).not.toContain('b64line');
    expect(said).toMatch(/^before\n\[redacted: private-key\].*after\n$/s);
    // skipped up to the middle of the key
    await output.write(`${'x'.repeat(99)}\n`.repeat(400));
    await output.write(`${key.join('\n')}\n${'y'.repeat(MOST_LIVE - 1_000)}\n`);
    const [piece] = await output.read();
    expect(piece?.text).not.toContain('b64line');
    expect(piece?.text).toContain('yyy');
  });

  test('are held back while only a part is written', async () => {
    const output = await follow();
    await output.write(`token ${TOKEN.slice(0, 10)}`);
    expect(text(await output.read('rest'))).toBe('token ');
    await output.write(`${TOKEN.slice(10)}\n`);
    expect(text(await output.read())).toBe('[redacted: github-token]\n');
    await output.write('Password:');
    expect(text(await output.read('rest'))).toBe('Password:');
  });

  test.each(['live', 'end'] as const)('are redacted in long lines that are split, read to the %s', async (reach) => {
    for (const secret of [TOKEN, `postgres://user:${'s3cretPassw0rd9'}@db/x`]) {
      const output = await follow();
      const size = reach === 'end' ? 128 * 1024 : MOST_LIVE;
      await output.write(`${'x '.repeat(size / 2 - 12)}${secret} ${'y '.repeat(300)}`);
      const said = text(await output.read(reach)) + text(await output.read('end'));
      expect(said).not.toContain(secret.slice(20, 30));
      expect(said).toContain('[redacted: ');
    }
  });

  test.each([
    ['an escape that is never ended', (secret: string) => `\u001b[32mok\u001b[0m \u001b]0;title\nnext ${secret}\n`],
    [
      'text that was read in the wrong encoding',
      (secret: string) => `\u001b[1mHe said\u001b[0m â\u0080\u009chi\u0090\n${secret}\n`,
    ],
    ['the title of a window', (secret: string) => `\u001b]0;${secret}\u0007 ok\n`],
    ['a link', (secret: string) => `\u001b]8;;https://x/?k=${secret}\u0007here\u001b]8;;\u0007\n`],
    ['a title in the middle of it', (secret: string) => `${secret.slice(0, 9)}\u001b]0;t\u0007${secret.slice(9)}\n`],
    ['marks that nobody sees', (secret: string) => `${secret.slice(0, 9)}\u202d\u200b\u000e${secret.slice(9)}\n`],
    ['two bytes a letter', (secret: string) => Buffer.from(`key ${secret}\n`, 'utf16le').toString('latin1')],
  ])('are taken out behind and within %s', async (_what, write) => {
    const output = await follow();
    await output.write(Buffer.from(write(TOKEN), 'utf8'));
    const said = text(await output.read('end'));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what a reader does not see
    const seen = said.replace(/\u001b\]0;t\u0007|[\u0000-\u0009\u000b-\u001f\u200b\u202d]/g, '');
    for (const one of [said, seen]) expect(one).not.toContain(TOKEN.slice(12));
    expect(said).toContain('[redacted: github-token]');
  });

  test('are not assumed after a mere mention of a key', async () => {
    const output = await follow();
    await output.write('src/a.ts:3 contains "-----BEGIN RSA PRIVATE KEY-----"\n');
    let said = text(await output.read());
    for (let index = 0; index < 9; index++) {
      await output.write(`test ${index} passed\n`);
      said += text(await output.read());
    }
    expect(said).toMatch(/^src\/a\.ts:3 contains "\[redacted: private-key\]"\n(?:test \d passed\n){9}$/);
  });

  test('are redacted when longer than a piece, also with line numbers', async () => {
    for (const before of ['', '  12 | ']) {
      const output = await follow();
      const body = Array.from({ length: 700 }, () => `${before}${'mQINBFqYv0Eab7xKQ'.repeat(4)}`);
      const key = [
        '-----BEGIN PGP PRIVATE KEY BLOCK-----',
        '',
        ...body,
        `${before}=aB3d`,
        '-----END PGP PRIVATE KEY BLOCK-----',
      ];
      await output.write(`before\n${key.join('\n')}\nafter\n`);
      const said = text(await output.read()) + text(await output.read('end'));
      expect(said).not.toContain('mQINBFqYv0E');
      expect(said).toMatch(/after\n$/);
    }
  });
});
