import { randomBytes } from 'node:crypto';
import { MAX_LOG_MESSAGE_BYTES } from '@interlude/protocol/limits';
import { SECRET_SHAPES } from '@interlude/protocol/redaction/secret-shapes';
import { truncateLogMessage, utf8Length } from '@interlude/protocol/text';
import { Redactor } from '@interlude/runner/logger/redactor';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { placedSecret, SECRETS_BY_KIND } from '../../support/secrets';

const redact = (message: string) => {
  const { text, redacted } = new Redactor().redact('test', message);
  return { text, redacted };
};
/** As the logger writes it. */
const cut = (message: string) => {
  const { text, missing } = new Redactor().redact('test', message);
  return truncateLogMessage(text, missing);
};
const one = (arbitrary: fc.Arbitrary<string>) => fc.sample(arbitrary, { numRuns: 1, seed: 7 })[0] as string;

describe('a secret with a known format', () => {
  test.each(Object.entries(SECRETS_BY_KIND))('%s is replaced by its kind', (kind, secrets) => {
    fc.assert(
      fc.property(secrets, fc.constantFrom(' ', '"', "'", '(', '=', ': ', '\\n', '\n', ',', '/'), (secret, before) => {
        // A random secret may contain another kind's prefix, and then has either name.
        fc.pre(
          SECRET_SHAPES.every((shape) => shape.kind === kind || secret.search(new RegExp(shape.pattern.source)) < 1),
        );
        const { text, redacted } = redact(`it said${before}${secret} and went on`);
        expect(text).toBe(`it said${before}[redacted: ${kind}] and went on`);
        expect(redacted).toBe(1);
      }),
    );
  });

  test('is named by its format rather than its key', () => {
    const secret = one(SECRETS_BY_KIND['github-token'] as fc.Arbitrary<string>);
    expect(redact(`GITHUB_TOKEN=${secret}`)).toEqual({ text: 'GITHUB_TOKEN=[redacted: github-token]', redacted: 1 });
  });

  test('is counted at each occurrence', () => {
    const secret = one(SECRETS_BY_KIND['npm-token'] as fc.Arbitrary<string>);
    expect(redact(`${secret} ${secret} ${secret}`).redacted).toBe(3);
  });
});

/** A key of letters only, before a character that may follow a type's name. */
const lettersOnly = (secret: string): [{ secret: string; text: string }, string, string] => [
  { secret, text: `aws_secret_access_key = ${secret}` },
  '',
  '=',
];

describe('a secret known by its context', () => {
  test('is always redacted', () => {
    fc.assert(
      fc.property(placedSecret, fc.string(), fc.string(), ({ secret, text }, before, after) => {
        const redacted = redact(`${before.replace(/\w$/, '')} ${text} ${after}`);
        expect(redacted.text).not.toContain(secret);
        expect(redacted.redacted).toBeGreaterThanOrEqual(1);
      }),
      { numRuns: 600, examples: [lettersOnly('ZKaaaaaaaaaaaaaaaaaaaaaa'), lettersOnly('RKqzLgswZIHjkbGiYN')] },
    );
  });

  test('leaves its surroundings', () => {
    const text = (message: string) => redact(message).text;
    expect(text('Authorization: Bearer 8f2k3l4m5n6b7v8c')).toBe('Authorization: Bearer [redacted: bearer-token]');
    // A value after a header's name and scheme is never prose, so even a plain word is redacted.
    expect(text('Authorization: Bearer supersecret')).toBe('Authorization: Bearer [redacted: bearer-token]');
    expect(text('authorization: Bearer ABCDEFGH')).toBe('authorization: Bearer [redacted: bearer-token]');
    expect(text('Authorization: Bearer token is missing')).toBe('Authorization: Bearer token is missing');
    expect(text('postgres://app:hunter2@db:5432/app')).toBe('postgres://app:[redacted: url-password]@db:5432/app');
    expect(text('postgres://app:p@ss:w0rd@db/app')).toBe('postgres://app:[redacted: url-password]@db/app');
    expect(text('{"user":"mara","password":"correct horse battery"}')).toBe(
      '{"user":"mara","password":"[redacted: password]"}',
    );
    expect(text('DB_PASSWORD=hunter npm start')).toBe('DB_PASSWORD=[redacted: password] npm start');
    expect(text('a?token=0123456789abcdef&page=2')).toBe('a?token=[redacted: token]&page=2');
  });
});

describe('a private key', () => {
  const name = ['RSA', 'PRIVATE', 'KEY'].join(' ');
  const body = Array.from({ length: 12 }, () => randomBytes(48).toString('base64'));
  const key = [`-----BEGIN ${name}-----`, ...body, `-----END ${name}-----`];

  test.each([
    ['over many lines', '\n'],
    ['in one line of JSON', '\\n'],
    ['with the line breaks of another system', '\r\n'],
  ])('is redacted completely %s', (_how, lineBreak) => {
    const { text, redacted } = redact(`before ${key.join(lineBreak)}${lineBreak}after`);
    expect(text).toBe(`before [redacted: private-key]${lineBreak}after`);
    expect(redacted).toBe(1);
  });

  test('is redacted up to where it breaks off', () => {
    expect(redact(`before ${key.slice(0, 6).join('\n')}`).text).toBe('before [redacted: private-key]');
  });

  test('is redacted when each line is a message', () => {
    const redactor = new Redactor();
    const said = key.map((line) => redactor.redact('agent', line).text);
    expect(new Set(said)).toEqual(new Set(['[redacted: private-key]']));
    expect(redactor.redact('agent', 'A3F9 is the build').text).toBe('A3F9 is the build');
  });

  test('does not affect other components, or lines after it breaks off', () => {
    const redactor = new Redactor();
    redactor.redact('agent', key[0] as string);
    expect(redactor.redact('other', 'ready').text).toBe('ready');
    expect(redactor.redact('agent', body[0] as string).redacted).toBe(1);
    expect(redactor.redact('agent', 'the command failed, trying again').text).toBe('the command failed, trying again');
    expect(redactor.redact('agent', 'ready').text).toBe('ready');
  });
});

describe('an ordinary line', () => {
  test.each([
    '[outbox] 41 records acknowledged at position 123456 in 12 ms',
    'session 0f8fad5b-d9cb-469f-a165-70867728950e is followed in /home/mara/.claude/projects/x/0f8fad5b.jsonl',
    'HEAD is now at 9a88f93e1d0c4d1b8a7e6f5d4c3b2a1908f7e6d5 Test it against the real parts',
    'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 etag "33a64df551425fcc55e4d42a148795d9"',
    'integrity sha512-9GZkM1o1aBvWqz0nMlvzvXfH0rKQbV8m5q3bT2c1o0u6b9y8x7w6v5u4t3s2r1q0p9o8n7m6l5k4j3i2h1g0fw==',
    'http://127.0.0.1:4319/sessions/agent-1?after=1234567890123456#L20',
    'ssh://git@github.com/acme/app.git and git@github.com:acme/app.git and https://registry.npmjs.org/@acme/core',
    'usage: input_tokens=1234, cache_read_input_tokens: 99120, maxTokens: 64000, token_count=12',
    'Unexpected token } in JSON at position 12; token: expected, got string; password: required',
    'Bearer authentication is required; Authorization: required',
    `set TOKEN=$GITHUB_TOKEN or --token <token>; password=$${'{DB_PASSWORD}'}; secret: {{ secret }}`,
    'the monkey key=value and sort_key=created_at, keyboard: qwertz-layout',
    'PWD=/home/mara/project OLDPWD=/tmp private_key=/etc/ssl/private/server.pem',
    '{"token":null,"password":"","secret":false}',
    'task-runner sk-learn risk-assessment-of-the-thing disk-usage',
    'npm warn deprecated npm_config_cache; ghost_in_the_shell; hf_hub; ops_team',
    'passed 12 tests, secretary, tokenizer: loaded, cookies: 3, keys: 4',
    '2026-11-20T10:26:44.590Z ok 🎉 naïve — “quoted”',
  ])('is unchanged: %s', (line) => {
    expect(redact(line)).toEqual({ text: line, redacted: 0 });
  });

  test('keeps hashes, ids, paths and numbers', () => {
    const hash = fc.constantFrom(8, 16, 20, 32).map((bytes) => randomBytes(bytes).toString('hex'));
    const word = fc.constantFrom('src', 'monkeys', 'tokens', 'compass', 'sink-trap', 'v1_2', 'Keyboard', 'ghost', 'A1');
    const path = fc.array(word, { minLength: 2, maxLength: 6 }).map((parts) => `/${parts.join('/')}.ts:12:3`);
    const part = fc.oneof(
      hash,
      fc.uuid(),
      path,
      word,
      fc.integer().map(String),
      path.map((text) => `https://acme.test${text}?after=1`),
    );
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 12 }), (parts) => {
        const line = parts.join(' ');
        expect(redact(line)).toEqual({ text: line, redacted: 0 });
      }),
      { numRuns: 300 },
    );
  });

  test('is not changed by a second pass', () => {
    fc.assert(
      fc.property(placedSecret, ({ text }) => {
        const once = redact(text).text;
        expect(redact(once).text).toBe(once);
      }),
      { numRuns: 300 },
    );
  });
});

describe('a registered secret', () => {
  test('is redacted everywhere, also URL-encoded', () => {
    const redactor = new Redactor();
    const token = 'a plain/one with+blanks';
    redactor.addSecret(token);
    redactor.addSecret(undefined);
    redactor.addSecret('short');
    const message = `x${token}y, ${encodeURIComponent(token)}, short`;
    expect(redactor.redact('test', message).text).toBe(
      'x[redacted: interlude-token]y, [redacted: interlude-token], short',
    );
  });
});

describe('an overlong message', () => {
  test('is truncated between characters, with the number of missing bytes', () => {
    fc.assert(
      fc.property(fc.constantFrom('a', 'ä', '漢', '😀'), fc.integer({ min: 0, max: 5 }), (unit, shift) => {
        const message = 'x'.repeat(shift) + unit.repeat(90_000);
        const text = cut(message);
        expect(utf8Length(text)).toBeLessThanOrEqual(MAX_LOG_MESSAGE_BYTES);
        const mark = /… \[([\d,]+) bytes cut\]$/.exec(text);
        const kept = text.slice(0, mark?.index);
        expect(message.startsWith(kept)).toBe(true);
        expect(kept).not.toMatch(/\p{Surrogate}/u);
        expect(utf8Length(kept) + Number(mark?.[1]?.replaceAll(',', ''))).toBe(utf8Length(message));
      }),
      { numRuns: 20 },
    );
  });

  test('has no partial secret at the cut', () => {
    const secret = one(SECRETS_BY_KIND['github-token'] as fc.Arbitrary<string>);
    for (let before = MAX_LOG_MESSAGE_BYTES - 60; before <= MAX_LOG_MESSAGE_BYTES + 4; before += 4) {
      const text = cut(`${'x '.repeat(before / 2)}${secret} ${'y'.repeat(20_000)}`);
      expect(text).not.toContain(secret.slice(0, 8));
    }
  });

  test('is redacted up to the cut', () => {
    const secret = one(SECRETS_BY_KIND['npm-token'] as fc.Arbitrary<string>);
    const text = cut(`${`${secret} `.repeat(2_000)}${'y'.repeat(500)}`);
    expect(text).not.toContain(secret.slice(0, 10));
  });
});

test('redacts a private key up to its last line, whatever is in between', () => {
  const body = (letter: string) => `${letter.repeat(64)}\n`;
  const lines = ['# copied by hand\n', 'a word\n', 'and one more\n', 'then a fourth\n', '-----END CERTIFICATE-----\n'];
  const key = `-----BEGIN RSA PRIVATE KEY-----\n${body('a')}${lines.join('')}${body('b')}-----END RSA PRIVATE KEY-----`;
  const told = new Redactor().redact('test', `before\n${key}\nbehind`).text;
  expect(told).toMatch(/^before\n.{1,60}\nbehind$/);
});
