import { readdirSync, readFileSync } from 'node:fs';
import * as limits from '@interlude/protocol/limits';
import { RedactedText, redactedText, wholeText } from '@interlude/protocol/redaction/redacted-text';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leakedIn, secretText, splitAt } from '@/tests/support/secrets';

const TOKEN = `gh${'p_'}0123456789abcdefghijABCDEFGHIJ0123456789`;
/** Redacts an open text. */
const shown = (text: string) => wholeText(text).shown().text;

/** The text shown to a live reader. */
function told(pieces: readonly string[]): { text: string; after: string[] } {
  const redacted = new RedactedText();
  const after: string[] = [];
  let text = '';
  for (const piece of pieces) {
    const more = redacted.more(piece);
    text = more === null ? redacted.shown().text : text + more;
    after.push(text);
  }
  return { text, after };
}

describe('redactedText', () => {
  it('leaves harmless text unchanged', () => {
    for (const text of [
      'Use a bearer token.',
      'see http://localhost:3000',
      'the token: expected and more',
      'task-',
      // Words that start like a service's token.
      'apply_patch',
      'TEXT_MESSAGE_CONTENT',
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      'aws-us-east-1',
      '',
      '😀',
    ]) {
      expect(shown(text)).toBe(text);
    }
  });

  it('marks and counts each secret', () => {
    expect(redactedText(`use ${TOKEN} or ${TOKEN}.`)).toEqual({
      text: 'use [redacted: github-token] or [redacted: github-token]',
      redacted: 2,
    });
  });

  it('hides the start of a possible secret of any length', () => {
    expect(shown(`use ${TOKEN.slice(0, 9)}`)).toBe('use …');
    expect(shown('DB_PASSWORD=h')).toBe('DB_PASSWORD=…');
    expect(shown('psql postgres://app:hunt')).toBe('psql postgres://app:…');
    expect(shown('"Authorization": "Be')).toBe('"Authorization": "…');
    // A row before its table is confirmed.
    expect(shown('| user | password | url |\n| mara | h')).toBe('| user | password | url |\n| mara | …');
    expect(shown('sqlplus system/Neoo18@RR8un')).toBe('sqlplus system/[redacted: password]');
  });

  it('ignores letters-only base64 as a parameter', () => {
    expect(shown('deploy --token KOabcdEFghIJklMNopQRstU= --region eu')).toBe(
      'deploy --token [redacted: token] --region eu',
    );
  });

  it('shows the end of a complete text', () => {
    for (const text of ['secret plan', 'the password is wrong', 'tokens: 1234', 'Secret: my-tls', 'pass = true'])
      expect(redactedText(text)).toEqual({ text, redacted: 0 });
    expect(redactedText(`${TOKEN} `.repeat(2).trimEnd()).redacted).toBe(2);
  });

  it.each([
    'AUTH',
    'CODE',
    'COOKIE',
    'HMAC',
    'JWT',
    'NONCE',
    'OTP',
    'PAT',
    'PHRASE',
    'PIN',
    'PSW',
    'PW',
    'SALT',
    'SESSION',
    'SID',
    'SIG',
  ])('redacts the value of a label in %s', (word) => {
    const value = 'q7Zk4vTr9wLx2BnM8sYcH3d';
    for (const text of [
      `SERVER_${word}=${value}`,
      `"server_${word.toLowerCase()}": "${value}"`,
      `run --server-${word.toLowerCase()} ${value}`,
    ])
      expect(redactedText(text), text).toMatchObject({ redacted: 1 });
  });

  it('treats every truncation length as truncated', () => {
    // Ids and one-word names.
    const names = /^(?:MAX_ID_LENGTH|MAX_PRIORITY|MAX_CALL_NAME|MAX_ATTACHMENT_NAME|AUTHOR_LENGTH)$/;
    const files = ['lib/protocol', 'lib/protocol/projections'].flatMap((folder) =>
      readdirSync(folder).flatMap((name) => (name.endsWith('.ts') ? `${folder}/${name}` : [])),
    );
    const passed = files.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/truncateText\(.*?, ([A-Z_]{2,})\)/g)].map(([, limit = '']) => limit),
    );
    const texts = [...new Set(passed)].filter((limit) => !names.test(limit));
    expect(texts.length).toBeGreaterThan(8);
    const isKnown = (limit: string) =>
      limits.TEXT_LIMITS.includes((limits as Record<string, unknown>)[limit] as number);
    expect(texts.filter((limit) => !isKnown(limit))).toEqual([]);
  });

  it('shows hidden text once it is harmless', () => {
    expect(told(['the token: exp', 'ected was', ' there']).after).toEqual([
      'the token: …',
      'the token: expected was',
      'the token: expected was there',
    ]);
  });

  it('redacts a private key to its end and shows later text', () => {
    const sign = (word: string) => `-----${word} ${['PRIVATE', 'KEY'].join(' ')}-----`;
    const lines = [sign('BEGIN'), 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC', 'BKcwggSjAgEAAoIBAQC7', sign('END'), 'done'];
    const { after, text } = told(lines.map((line) => `${line}\n`));
    expect(after.slice(0, 3)).toEqual(Array(3).fill('[redacted: private-key]'));
    expect(text).toBe('[redacted: private-key]\ndone\n');
  });

  it('shows the text after a truncated private key', () => {
    const begin = `-----BEGIN ${['PRIVATE', 'KEY'].join(' ')}-----`;
    expect(shown(`a ${begin} line\nis how\nit all begins,\nI think\nand so on`)).toContain('and so on');
  });

  it('redacts a private key after a truncated one', () => {
    const begin = `-----BEGIN ${['PRIVATE', 'KEY'].join(' ')}-----`;
    const body = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7';
    for (const between of ['\n', '\nGreen.\n', '\nGreen.\nGreen.\n', '\nGreen.\nGreen.\nGreen.\n', ' ']) {
      const text = `${begin}\n${body}${between} ${begin}\n${body}\n`;
      for (let end = 1; end <= text.length; end += 1)
        expect(shown(text.slice(0, end))).not.toContain(body.slice(0, 12));
      const { after } = told([...text]);
      expect(after.at(-1)).toBe(shown(text));
    }
  });

  it('hides a secret at every split', () => {
    fc.assert(
      fc.property(secretText, fc.nat(), ({ text, secrets }, cut) => {
        const end = cut % (text.length + 1);
        expect(leakedIn(shown(text.slice(0, end)), secrets)).toBeNull();
      }),
      { numRuns: 3_000 },
    );
  });

  it('shows live and later readers the same text at every point', () => {
    fc.assert(
      fc.property(secretText, fc.array(fc.nat(), { maxLength: 12 }), ({ text, secrets }, cuts) => {
        const pieces = splitAt(text, cuts);
        const { after } = told(pieces);
        for (const [index, now] of after.entries()) {
          expect(now).toBe(shown(pieces.slice(0, index + 1).join('')));
          expect(leakedIn(now, secrets)).toBeNull();
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('shows the same text in lines of any length', () => {
    const filler = fc.constantFrom('a', 'ab ', 'key ', '"x":1,', '\u001b[0m', 'Az0/');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(filler, fc.integer({ min: 1, max: 9_000 }), secretText), { minLength: 1, maxLength: 4 }),
        fc.array(fc.nat(), { maxLength: 8 }),
        (parts, cuts) => {
          const text = parts
            .map(([fill, times, { text }]) => `${fill.repeat(times)} ${text.replaceAll('\n', ' ')}`)
            .join('');
          const pieces = splitAt(text, cuts);
          expect(told(pieces).text === shown(text)).toBe(true);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('leaves its own output unchanged', () => {
    fc.assert(
      fc.property(secretText, ({ text }) => {
        // Only complete texts: an open one hides words that depend on earlier redactions.
        const once = redactedText(text, false).text;
        expect(redactedText(once, false).text).toBe(once);
      }),
      { numRuns: 2_000 },
    );
  });
});
