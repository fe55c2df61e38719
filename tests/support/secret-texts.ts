import fc from 'fast-check';
import { placedSecret, SECRETS_BY_KIND } from './secrets';

/** A text that holds secrets between other things, and those of them of which nothing may be told. */
export interface SecretText {
  text: string;
  secrets: string[];
}

const LABEL = ['PRIVATE', 'KEY'].join(' ');
const base64 = (length: number) =>
  fc
    .string({
      unit: fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'),
      minLength: length,
      maxLength: length,
    })
    .map((text) => `${text.slice(0, 1)}9${text.slice(2)}`);

const key: fc.Arbitrary<SecretText> = fc
  .tuple(
    fc.array(base64(64), { minLength: 1, maxLength: 5 }),
    base64(30),
    fc.constantFrom('\n', '\\n', '\r\n'),
    fc.boolean(),
  )
  .map(([lines, last, newline, isWhole]) => ({
    text: [`-----BEGIN RSA ${LABEL}-----`, ...lines, last, ...(isWhole ? [`-----END RSA ${LABEL}-----`] : []), ''].join(
      newline,
    ),
    secrets: [...lines, last],
  }));

/** Of known shapes, without what all of a kind begin with. */
const shaped: fc.Arbitrary<SecretText> = fc
  .constantFrom(...Object.entries(SECRETS_BY_KIND))
  .chain(([kind, secret]) =>
    secret.map((text) => ({ text: `${text} `, secrets: [text.slice(kind === 'slack-webhook' ? 24 : 12)] })),
  );

// what stands behind a sign that ends a bearer's token is none of it to any rule
const placed: fc.Arbitrary<SecretText> = placedSecret
  .filter(({ secret, text }) => !/bearer/i.test(text) || /^[A-Za-z0-9._~+/=-]+$/.test(secret))
  .map(({ secret, text }) => ({ text: `${text}\n`, secrets: [secret] }));

const prose: fc.Arbitrary<SecretText> = fc
  .constantFrom(
    ...[
      'The build is green.\n',
      'Look at http://localhost:3000',
      ' ',
      '\n',
      '\n\n',
      'a 😀 key idea ',
      'the token: expected ',
    ],
    ...[
      '{"command":"npm test",',
      'Use a bearer token. ',
      'cookie, which is sweet ',
      'task-',
      '\u001b[31mred\u001b[0m ',
      'eyJ ',
      ': ',
    ],
    ...['-----BEGIN nothing-----\n', `"-----BEGIN RSA ${LABEL}-----" is how it begins. `],
  )
  .map((text) => ({ text, secrets: [] }));

export const secretText: fc.Arbitrary<SecretText> = fc
  .array(fc.oneof(shaped, placed, key, { weight: 3, arbitrary: prose }), { minLength: 1, maxLength: 6 })
  .map((parts) => ({
    // apart from each other, as secrets are
    text: parts.map(({ text }) => text).join(' '),
    secrets: parts.flatMap(({ secrets }) => secrets),
  }));

/** A text in pieces, cut anywhere. */
export function inPieces(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set([0, ...cuts.map((cut) => cut % (text.length + 1)), text.length])].sort((a, b) => a - b);
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

/** Nine signs of a secret that stand in a text; null if there are none. Fewer tell nothing. */
export function leakedIn(text: string, secrets: readonly string[]): string | null {
  for (const secret of secrets) {
    for (let at = 0; at + 9 <= secret.length; at += 1) {
      const part = secret.slice(at, at + 9);
      if (text.includes(part)) return part;
    }
  }
  return null;
}
