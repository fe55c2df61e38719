import { MAX_ID_LENGTH, MAX_INBOX_ID } from '@interlude/protocol/limits';
import { attentionOfAgent, attentionOfSession } from '@interlude/protocol/projections/open-requests';
import { expect, it } from 'vitest';
import { anAgent, aSession } from '../../ui/rows';

it('names what needs a person by an id that can be handed back, whatever the ids of agents are made of', () => {
  for (const sign of ['a', '"', '\\', '\u0001', '\ud800']) {
    const id = sign.repeat(MAX_ID_LENGTH);
    const openedPosition = String(Number.MAX_SAFE_INTEGER);
    const request = { id, title: 'Run it?', kind: 'permission' as const, digest: 'd', openedPosition };
    const [asked] = attentionOfSession(aSession({ id }), [request]);
    expect(asked?.id.length).toBeLessThanOrEqual(MAX_INBOX_ID);
  }
});

it('names an agent that can’t be reached once: with the sessions that lost something, or else by itself', () => {
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
