import { expect, test } from 'vitest';
import { judgeAnswer, placeFault } from '@/components/embed/handshake';

const parent = { name: 'parent' };
const expected = { parent, nonce: 'n1', origins: ['https://console.test'] };
const answer = {
  source: parent as unknown,
  origin: 'https://console.test',
  data: { interlude: 'connect', nonce: 'n1', theme: 'dark', height: true } as unknown,
  ports: ['port'],
};

test('the answer of the parent from a registered origin with the nonce and a port connects', () => {
  expect(judgeAnswer(answer, expected)).toEqual({
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
])('%s is ignored', (_what, change) => {
  expect(judgeAnswer({ ...answer, ...change }, expected)).toEqual({ kind: 'ignored' });
});

test.each([
  ['null', 'has no origin'],
  ['https://console.test:8443', 'https://console.test:8443, which may not embed'],
  ['http://console.test', 'may not embed'],
  ['https://console.test.evil.test', 'may not embed'],
  ['https://evil.test', 'INTERLUDE_EMBED_ORIGINS'],
])('a parent of %s is refused in words', (origin, words) => {
  expect(judgeAnswer({ ...answer, origin }, expected)).toEqual({
    kind: 'refused',
    why: expect.stringContaining(words),
  });
});

test('a connection without a port is refused in words', () => {
  expect(judgeAnswer({ ...answer, ports: [] }, expected)).toMatchObject({ kind: 'refused' });
});

test('a theme that is none is left out', () => {
  const data = { interlude: 'connect', nonce: 'n1', theme: 'pink' };
  expect(judgeAnswer({ ...answer, data }, expected)).toMatchObject({ theme: null, wantsHeight: false });
});

test('only a frame right in the page at the top has a place', () => {
  expect(placeFault({ hasParent: true, isNested: false })).toBeNull();
  expect(placeFault({ hasParent: false, isNested: false })).toContain('in a frame of another one');
  expect(placeFault({ hasParent: true, isNested: true })).toContain('is a frame itself');
});
