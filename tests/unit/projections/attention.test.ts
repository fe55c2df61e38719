import { expect, it } from 'vitest';
import { attentionOfSession } from '@/lib/projections/attention';
import { MAX_ID_LENGTH, MAX_INBOX_ID } from '@/lib/protocol/limits';
import { aSession } from '../../ui/rows';

it('names what needs a person by an id that can be handed back, whatever the ids of agents are made of', () => {
  for (const sign of ['a', '"', '\\', '\u0001', '\ud800']) {
    const id = sign.repeat(MAX_ID_LENGTH);
    const openedPosition = String(Number.MAX_SAFE_INTEGER);
    const request = { id, title: 'Run it?', kind: 'permission' as const, digest: 'd', openedPosition };
    const [asked] = attentionOfSession(aSession({ id }), [request]);
    expect(asked?.id.length).toBeLessThanOrEqual(MAX_INBOX_ID);
  }
});
