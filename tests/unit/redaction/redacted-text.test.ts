import { readdirSync, readFileSync } from 'node:fs';
import * as limits from '@interlude/protocol/limits';
import { RedactedText, redactedText, wholeText } from '@interlude/protocol/redaction/redacted-text';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leakedIn, secretText, splitAt } from '@/tests/support/secrets';

const TOKEN = `gh${'p_'}0123456789abcdefghijABCDEFGHIJ0123456789`;
/** A text that may go on. */
const shown = (text: string) => wholeText(text).shown().text;

/** What a reader has who was told each piece as it came. */
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

describe('a text without secrets', () => {
  it('leaves everything else as it is', () => {
    for (const text of [
      'Use a bearer token.',
      'see http://localhost:3000',
      'the token: expected and more',
      'task-',
      // words that begin as the token of some service does
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

  it('names what it takes out, and counts it', () => {
    expect(redactedText(`use ${TOKEN} or ${TOKEN}.`)).toEqual({
      text: 'use [redacted: github-token] or [redacted: github-token]',
      redacted: 2,
    });
  });

  it('holds back what may be the beginning of a secret, however little of it there is', () => {
    expect(shown(`use ${TOKEN.slice(0, 9)}`)).toBe('use …');
    expect(shown('DB_PASSWORD=h')).toBe('DB_PASSWORD=…');
    expect(shown('psql postgres://app:hunt')).toBe('psql postgres://app:…');
    expect(shown('"Authorization": "Be')).toBe('"Authorization": "…');
    // a row before it confirms its table
    expect(shown('| user | password | url |\n| mara | h')).toBe('| user | password | url |\n| mara | …');
    expect(shown('sqlplus system/Neoo18@RR8un')).toBe('sqlplus system/[redacted: password]');
  });

  it('takes base64 of letters alone for no parameter', () => {
    expect(shown('deploy --token KOabcdEFghIJklMNopQRstU= --region eu')).toBe(
      'deploy --token [redacted: token] --region eu',
    );
  });

  it('holds nothing back of a text that has ended', () => {
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
  ])('finds what a name in %s names, without other words of secrets around', (word) => {
    const value = 'q7Zk4vTr9wLx2BnM8sYcH3d';
    for (const text of [
      `SERVER_${word}=${value}`,
      `"server_${word.toLowerCase()}": "${value}"`,
      `run --server-${word.toLowerCase()} ${value}`,
    ])
      expect(redactedText(text), text).toMatchObject({ redacted: 1 });
  });

  it('knows every length that a text is truncated to', () => {
    // ids and names of one word
    const names = /^(?:MAX_ID_LENGTH|MAX_PRIORITY|MAX_CALL_NAME|MAX_ATTACHMENT_NAME|MOST_BY)$/;
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

  it('shows what was held back once it is known to be none', () => {
    expect(told(['the token: exp', 'ected was', ' there']).after).toEqual([
      'the token: …',
      'the token: expected was',
      'the token: expected was there',
    ]);
  });

  it('takes a private key out to its end, and shows what follows', () => {
    const sign = (word: string) => `-----${word} ${['PRIVATE', 'KEY'].join(' ')}-----`;
    const lines = [sign('BEGIN'), 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC', 'BKcwggSjAgEAAoIBAQC7', sign('END'), 'done'];
    const { after, text } = told(lines.map((line) => `${line}\n`));
    expect(after.slice(0, 3)).toEqual(Array(3).fill('[redacted: private-key]'));
    expect(text).toBe('[redacted: private-key]\ndone\n');
  });

  it('gives up on a private key that breaks off, so that what follows is shown', () => {
    const begin = `-----BEGIN ${['PRIVATE', 'KEY'].join(' ')}-----`;
    expect(shown(`a ${begin} line\nis how\nit all begins,\nI think\nand so on`)).toContain('and so on');
  });

  it('tells no part of a private key that begins where another one broke off', () => {
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

  it('tells no part of a secret, wherever the text is cut', () => {
    fc.assert(
      fc.property(secretText, fc.nat(), ({ text, secrets }, cut) => {
        const end = cut % (text.length + 1);
        expect(leakedIn(shown(text.slice(0, end)), secrets)).toBeNull();
      }),
      { numRuns: 3_000 },
    );
  });

  it('shows the same whoever followed it and whoever reads all of it, at every moment', () => {
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

  it('does so in lines of any length, too', () => {
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

  it('finds nothing new in what it has shown', () => {
    fc.assert(
      fc.property(secretText, ({ text }) => {
        // only ended texts: an open text holds back words that depend on what it has already redacted
        const once = redactedText(text, false).text;
        expect(redactedText(once, false).text).toBe(once);
      }),
      { numRuns: 2_000 },
    );
  });
});
