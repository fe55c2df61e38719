import { expect, test } from 'vitest';
import { versionsOf } from '@/components/agents/board-agent';

test.each([
  [null, []],
  [{}, []],
  [{ versions: 'all of them' }, []],
  [
    { versions: { runner: '0.1.0', protocol: '1', provider: 'Claude Code 2.1.329' } },
    ['runner 0.1.0', 'protocol 1', 'Claude Code 2.1.329'],
  ],
  [{ versions: { runner: '0.1.0', protocol: 1, provider: ' ' } }, ['runner 0.1.0']],
])('versionsOf(%j) returns %j', (status, shown) => {
  expect(versionsOf(status).map(({ text }) => text)).toEqual(shown);
});
