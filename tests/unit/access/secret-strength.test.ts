import fc from 'fast-check';
import { expect, test } from 'vitest';
import { guessableSecrets } from '@/lib/server/access/access-settings';
import { isGuessable } from '@/lib/server/access/secret-strength.mjs';

test.each([
  'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
  '12345678901234567890',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiopasdfghjklzxcvbnm',
  'mnbvcxzlkjhgfdsapoiuytrewq',
  'deadbeefdeadbeefdeadbeefdeadbeef',
  'changeme-changeme-changeme',
  'correct-horse-battery-staple',
  'my-super-secret-interlude-token',
  'interlude-production-token-2026',
  'SuperSecretPassword123!',
  'Summer2024Summer2024',
  'a1b2c3a1b2c3a1b2c3a1b2c3',
  '8f3kq0z7xw2m1',
  '1q2w3e4r5t6y7u8i',
  '!QAZ2wsx#EDC4rfv',
  'zaq12wsxcde34rfv',
  'S3cr3tT0k3nF0rM3',
  'P@$$w0rd-P@ssw0rd-2026',
  '1nt3rlud3-4dm1n-t0k3n',
  'h0rs3b4tt3ryst4pl3',
])('%s is guessable', (secret) => {
  expect(isGuessable(secret)).toBe(true);
});

/** Uniform, unlike `fc.uint8Array`, which prefers edges such as 32 zeros. */
const randomBytes = fc
  .noBias(fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 32, maxLength: 32 }))
  .map((bytes) => Buffer.from(bytes));

test('32 random bytes are not guessable in any usual encoding', () => {
  fc.assert(
    fc.property(randomBytes, fc.constantFrom('base64', 'base64url', 'hex'), (bytes, spelling) => {
      expect(isGuessable(bytes.toString(spelling))).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

// most false warnings come from lower-case letters and digits
const LOWER = 'abcdefghijklmnopqrstuvwxyz0123456789';

test.each([
  [20, LOWER, 0.03],
  [24, LOWER, 0.01],
  [16, LOWER + LOWER.slice(0, 26).toUpperCase(), 0.01],
])('flags few random secrets of %d characters from %s', (length, alphabet, most) => {
  const secret = fc.noBias(fc.string({ unit: fc.constantFrom(...alphabet), minLength: length, maxLength: length }));
  const secrets = fc.sample(secret, { numRuns: 10_000, seed: 36 });
  expect(secrets.filter(isGuessable).length / secrets.length).toBeLessThanOrEqual(most);
});

test('names every guessable secret of the environment, with the command for a good one', () => {
  const strong = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64');
  const weak = 'changeme-changeme-changeme';
  expect(guessableSecrets({ INTERLUDE_TOKEN: strong, INTERLUDE_CRON_SECRET: strong })).toEqual([]);
  const all = guessableSecrets({ INTERLUDE_TOKEN: weak, INTERLUDE_CRON_SECRET: weak, INTERLUDE_METRICS_TOKEN: weak });
  expect(all.map((line) => line.split(' ')[0])).toEqual([
    'INTERLUDE_TOKEN',
    'INTERLUDE_CRON_SECRET',
    'INTERLUDE_METRICS_TOKEN',
  ]);
  for (const line of all) expect(line).toMatch(/^[^\n]*openssl rand -base64 32[^\n]*$/);
  for (const line of all) expect(line).not.toContain(weak);
});
