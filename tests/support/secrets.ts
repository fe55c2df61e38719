import fc from 'fast-check';

/** Random secrets in their services' formats, assembled from parts so that no scanner reports this file as a leak. */
const of = (alphabet: string, length: number | { min: number; max: number }) => {
  const { min, max } = typeof length === 'number' ? { min: length, max: length } : length;
  return fc.string({ unit: fc.constantFrom(...alphabet), minLength: min, maxLength: max });
};
const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const DIGITS = '0123456789';
const UPPER = LOWER.toUpperCase();
const ALNUM = LOWER + UPPER + DIGITS;
const URL64 = `${ALNUM}-_`;
const HEX = '0123456789abcdef';

const after = (prefix: string, rest: fc.Arbitrary<string>) => rest.map((text) => prefix + text);

/** By the kind named in the redaction marker. */
export const SECRETS_BY_KIND: Readonly<Record<string, fc.Arbitrary<string>>> = {
  'interlude-token': fc
    .tuple(fc.constantFrom('t', 's', 'e', 'c'), of(URL64, 43))
    .map(([kind, rest]) => `il${kind}_${rest}`),
  'anthropic-key': after(['sk', 'ant', 'api03-'].join('-'), of(URL64, 93)),
  'openai-key': after(['sk', 'proj-'].join('-'), of(URL64, { min: 40, max: 156 })),
  'groq-key': after('gsk' + '_', of(ALNUM, 52)),
  'xai-key': after('xai' + '-', of(ALNUM, 80)),
  'huggingface-token': after('hf' + '_', of(LOWER + UPPER, 34)),
  'github-token': fc.oneof(
    after('gh' + 'p_', of(ALNUM, 36)),
    after('gh' + 's_', of(ALNUM, 36)),
    after('github' + '_pat_', of(ALNUM, 82)),
  ),
  'gitlab-token': after('gl' + 'pat-', of(URL64, 20)),
  'npm-token': after('npm' + '_', of(ALNUM, 36)),
  'pypi-token': after('pypi' + '-AgEI', of(URL64, 100)),
  'docker-token': after('dckr' + '_pat_', of(URL64, 27)),
  'aws-access-key': after('AK' + 'IA', of(UPPER + DIGITS, 16)),
  'google-api-key': after('AI' + 'za', of(URL64, 35)),
  'google-oauth-token': after('ya' + '29.', of(URL64, 60)),
  'slack-token': fc
    .tuple(of(DIGITS, 12), of(DIGITS, 12), of(ALNUM, 24))
    .map((parts) => ['xox' + 'b', ...parts].join('-')),
  'slack-webhook': fc
    .tuple(of(UPPER + DIGITS, 9), of(UPPER + DIGITS, 9), of(ALNUM, 24))
    .map(([team, bot, key]) => `hooks.slack${'.com'}/services/T${team}/B${bot}/${key}`),
  'stripe-key': after(['sk', 'live', ''].join('_'), of(ALNUM, 24)),
  'sendgrid-key': fc.tuple(of(URL64, 22), of(URL64, 43)).map(([id, key]) => ['S' + 'G', id, key].join('.')),
  'shopify-token': after('shp' + 'at_', of(HEX, 32)),
  'vercel-token': after('vc' + 'p_', of(ALNUM, 56)),
  'cloudflare-token': after('cf' + 'ut_', of(ALNUM, 48)),
  'databricks-token': after('da' + 'pi', of(HEX, 32)),
  'vault-token': after('hv' + 's.', of(URL64, 95)),
  'tailscale-key': fc.tuple(of(ALNUM, 16), of(ALNUM, 32)).map((parts) => ['ts' + 'key', 'auth', ...parts].join('-')),
  'grafana-token': fc.tuple(of(ALNUM, 32), of(HEX, 8)).map(([key, sum]) => `gl${'sa_'}${key}_${sum}`),
  'linear-key': after(['lin', 'api', ''].join('_'), of(ALNUM, 40)),
  'notion-token': fc.tuple(of(DIGITS, 11), of(ALNUM, 35)).map((parts) => ['nt' + 'n_', ...parts].join('')),
  'figma-token': after('fi' + 'gd_', of(URL64, 40)),
  jwt: fc
    .tuple(of(ALNUM, { min: 30, max: 60 }), of(ALNUM, { min: 60, max: 200 }), of(URL64, 43))
    .map(([header, payload, signature]) => [`ey${'J'}${header}`, `eyJ${payload}`, signature].join('.')),
};

/** A generated password: letters, digits and symbols without spaces. */
const drawn = fc
  .tuple(of(LOWER, 4), of(UPPER, 3), of(DIGITS, 3), of(`${ALNUM}._~+=%#!-`, { min: 6, max: 40 }))
  .map((parts) => parts.join(''));
const base64 = fc
  .tuple(of(DIGITS + UPPER, 2), of(`${ALNUM}+/`, { min: 20, max: 60 }), of(LOWER, 2), fc.constantFrom('', '=', '=='))
  .map((parts) => parts.join(''));
const hex = of(HEX, { min: 32, max: 64 }).map((text) => `0a${text}`);

/** A secret without a known format, in a text that identifies it by its place. */
export const placedSecret: fc.Arbitrary<{ secret: string; text: string }> = fc
  .tuple(fc.oneof(drawn, base64, hex), fc.nat())
  .map(([secret, choice]) => {
    const places = [
      `GITHUB_TOKEN=${secret}`,
      `export DB_PASSWORD="${secret}"`,
      `{"apiKey":"${secret}","user":"mara"}`,
      `body {\\"client_secret\\":\\"${secret}\\"}`,
      `accessToken: '${secret}',`,
      `aws_secret_access_key = ${secret}`,
      `secret_key: ${secret}`,
      `{ token: '${secret}' }`,
      `Authorization: Bearer ${secret}`,
      `authorization: Basic ${secret}`,
      `curl -H "Authorization: Bearer ${secret}" -H "accept: */*"`,
      `{"authorization":"token ${secret}"}`,
      `x-api-key: ${secret}`,
      `got bearer ${secret} from the proxy`,
      `https://mara:${encodeURIComponent(secret)}@example.com/x.git`,
      `postgres://app:${encodeURIComponent(secret)}@db:5432/app?sslmode=require`,
      `redis://:${encodeURIComponent(secret)}@cache:6379`,
      `GET /callback?access_token=${encodeURIComponent(secret)}&state=1`,
      `deploy --verbose --token ${secret} --region eu`,
      `login --password=${secret}`,
      `Cookie: theme=dark; session=${secret}`,
      `Server=db;User Id=app;Pwd=${secret};`,
    ];
    const text = places[choice % places.length] as string;
    return { secret: text.includes(secret) ? secret : encodeURIComponent(secret), text };
  });

/** A text with secrets, and the secrets that must not leak. */
export interface SecretText {
  text: string;
  secrets: string[];
}

const LABEL = ['PRIVATE', 'KEY'].join(' ');
const base64Body = (length: number) =>
  fc
    .string({
      unit: fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'),
      minLength: length,
      maxLength: length,
    })
    .map((text) => `${text.slice(0, 1)}9${text.slice(2)}`);

const key: fc.Arbitrary<SecretText> = fc
  .tuple(
    fc.array(base64Body(64), { minLength: 1, maxLength: 5 }),
    base64Body(30),
    fc.constantFrom('\n', '\\n', '\r\n'),
    fc.boolean(),
  )
  .map(([lines, last, newline, isWhole]) => ({
    text: [`-----BEGIN RSA ${LABEL}-----`, ...lines, last, ...(isWhole ? [`-----END RSA ${LABEL}-----`] : []), ''].join(
      newline,
    ),
    secrets: [...lines, last],
  }));

/** Secrets with known formats, without their common prefixes. */
const shaped: fc.Arbitrary<SecretText> = fc
  .constantFrom(...Object.entries(SECRETS_BY_KIND))
  .chain(([kind, secret]) =>
    secret.map((text) => ({ text: `${text} `, secrets: [text.slice(kind === 'slack-webhook' ? 24 : 12)] })),
  );

// characters after the end of a bearer token don't belong to the secret
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
    // separated, as secrets are in practice
    text: parts.map(({ text }) => text).join(' '),
    secrets: parts.flatMap(({ secrets }) => secrets),
  }));

/** Splits a text at the given places. */
export function splitAt(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set([0, ...cuts.map((cut) => cut % (text.length + 1)), text.length])].sort((a, b) => a - b);
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

/** Nine consecutive secret characters found in a text, or null. Fewer don't count as a leak. */
export function leakedIn(text: string, secrets: readonly string[]): string | null {
  for (const secret of secrets) {
    for (let index = 0; index + 9 <= secret.length; index += 1) {
      const part = secret.slice(index, index + 9);
      if (text.includes(part)) return part;
    }
  }
  return null;
}
