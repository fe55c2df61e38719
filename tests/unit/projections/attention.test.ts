import { MAX_ID_LENGTH, MAX_INBOX_ID } from '@interlude/protocol/limits';
import { attentionOfAgent, attentionOfSession } from '@interlude/protocol/projections/open-requests';
import { expect, it } from 'vitest';
import { anAgent, aSession } from '../../ui/rows';

it('attention ids are unique for any agent id', () => {
  for (const sign of ['a', '"', '\\', '\u0001', '\ud800']) {
    const id = sign.repeat(MAX_ID_LENGTH);
    const openedPosition = String(Number.MAX_SAFE_INTEGER);
    const request = { id, title: 'Run it?', kind: 'permission' as const, digest: 'd', openedPosition };
    const [asked] = attentionOfSession(aSession({ id }), [request]);
    expect(asked?.id.length).toBeLessThanOrEqual(MAX_INBOX_ID);
  }
});

it('an unreachable agent appears once: by its interrupted sessions, else by itself', () => {
  const outage = { since: 7, reason: 'no answer' };
  const ofAgent = (unreachable: object | undefined) => attentionOfAgent(anAgent({ status: { unreachable } }));
  expect(ofAgent({ ...outage, wasAtWork: false })).toMatchObject([
    { kind: 'lost-contact', title: 'no answer', version: 7 },
  ]);
  expect([ofAgent({ ...outage, wasAtWork: true }), ofAgent(undefined), ofAgent({ since: 'long ago' })]).toEqual([
    [],
    [],
    [],
  ]);
});
