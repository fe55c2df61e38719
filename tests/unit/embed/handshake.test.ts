import { expect, test } from 'vitest';
import { placeFault, validateAnswer } from '@/components/embed/handshake';

const parent = { name: 'parent' };
const expected = { parent, nonce: 'n1', origins: ['https://console.test'] };
const answer = {
  source: parent as unknown,
  origin: 'https://console.test',
  data: { interlude: 'connect', nonce: 'n1', theme: 'dark', height: true } as unknown,
  ports: ['port'],
};

test('connects on the parent’s answer with origin, nonce and port', () => {
  expect(validateAnswer(answer, expected)).toEqual({
    kind: 'connected',
    port: 'port',
    origin: 'https://console.test',
    theme: 'dark',
    wantsHeight: true,
  });
});

test.each([
  ['another window, whatever it says', { source: {} }],
  ['another window of a registered origin', { source: null }],
  ['something else', { data: { type: 'webpackOk' } }],
  ['no object', { data: 'connect' }],
  ['nothing', { data: null }],
  ['an answer to an earlier frame', { data: { interlude: 'connect', nonce: 'n0' } }],
  ['an answer without a nonce', { data: { interlude: 'connect' } }],
])('ignores %s', (_what, change) => {
  expect(validateAnswer({ ...answer, ...change }, expected)).toEqual({ kind: 'ignored' });
});

test.each([
  ['null', 'has no origin'],
  ['https://console.test:8443', 'https://console.test:8443 may not embed'],
  ['http://console.test', 'may not embed'],
  ['https://console.test.evil.test', 'may not embed'],
  ['https://evil.test', 'INTERLUDE_EMBED_ORIGINS'],
])('refuses a parent of %s with a reason', (origin, words) => {
  expect(validateAnswer({ ...answer, origin }, expected)).toEqual({
    kind: 'refused',
    why: expect.stringContaining(words),
  });
});

test('refuses an answer without a port with a reason', () => {
  expect(validateAnswer({ ...answer, ports: [] }, expected)).toMatchObject({ kind: 'refused' });
});

test('ignores an unknown theme', () => {
  const data = { interlude: 'connect', nonce: 'n1', theme: 'pink' };
  expect(validateAnswer({ ...answer, data }, expected)).toMatchObject({ theme: null, wantsHeight: false });
});

test('allows only a frame directly in the top page', () => {
  expect(placeFault({ hasParent: true, isNested: false })).toBeNull();
  expect(placeFault({ hasParent: false, isNested: false })).toContain('only works in a frame');
  expect(placeFault({ hasParent: true, isNested: true })).toContain('inside another frame');
});
