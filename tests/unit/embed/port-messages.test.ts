import { expect, test, vi } from 'vitest';
import { placeOf } from '@/components/embed/frame-links';
import { consoleMessage } from '@/components/embed/port-messages';
import { checkToken } from '@/components/embed/token-keeper';

test.each([
  [{ type: 'token', token: 'abc' }],
  [{ type: 'no-token', reason: 'not signed in' }],
  [{ type: 'theme', theme: 'light' }],
])('parses %j', (message) => {
  expect(consoleMessage(message)).toEqual(message);
});

test.each([[{ type: 'token' }], [{ type: 'token', token: 7 }]])('turns %j into an invalid token', (message) => {
  expect(consoleMessage(message)).toEqual({ type: 'token', token: '' });
});

test.each(['', 'a b\r\nx-other: 1'])('refuses the token %j without a request', async (token) => {
  const asked = vi.spyOn(globalThis, 'fetch');
  expect(await checkToken(token)).toEqual({ kind: 'refused' });
  expect(asked).not.toHaveBeenCalled();
  asked.mockRestore();
});

test.each([[{ type: 'theme', theme: 'pink' }], [{ type: 'navigate' }], ['token'], [null]])(
  '%j is no message',
  (data) => {
    expect(consoleMessage(data)).toBeNull();
  },
);

const HOST = 'live.test:3000';

test.each([
  ['/', { fleet: true }, '/'],
  ['/sessions/a%2Fb#turn-r%201', { session: 'a/b', anchor: 'turn-r 1' }, '/sessions/a%2Fb#turn-r%201'],
  ['/agents/x', { agent: 'x' }, '/agents/x'],
  ['/agents/x/logs?q=1#0005', { agentLogs: 'x', anchor: '0005' }, '/agents/x/logs#0005'],
])('resolves a link to %s', (path, to, told) => {
  expect(placeOf(`http://${HOST}${path}`, HOST)).toEqual({ to, path: told });
});

test.each(['http://other.test/sessions/a', `ftp://${HOST}/`, `http://${HOST}/inbox`, 'nonsense', 'javascript:1'])(
  'a link to %s is the browser’s own',
  (href) => {
    expect(placeOf(href, HOST)).toBeNull();
  },
);
