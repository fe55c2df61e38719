import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { arbitraryBatches } from '../support/arbitrary-events';
import { MemoryLog } from '../support/memory-log';

it('are never given by an earlier text, or by a text of a turn triggered by a task', () => {
  fc.assert(
    fc.property(arbitraryBatches, (batches) => {
      const log = new MemoryLog();
      for (const batch of batches) log.append(batch);
      const events = batches.flat();
      for (const { messageId, state, answeredInTurnId: turnId } of log.obligations.values()) {
        if (state !== 'answered' || turnId === null) continue;
        const isNamed = log.headers.get(turnId)?.userMessageIds.includes(messageId) === true;
        expect([messageId, turnId, isNamed || isRepliedTo(events, messageId)]).toEqual([messageId, turnId, true]);
        if (!isNamed) expect(log.headers.get(turnId)?.trigger?.kind).not.toBe('task');
      }
    }),
    { numRuns: 1_000 },
  );
});

/** True if a text that started while the agent held the message names it, judged by the events alone. */
function isRepliedTo(events: readonly AgUiEvent[], messageId: string): boolean {
  let isQueued = false;
  let isBegun = false;
  let isHeld = false;
  const texts = new Map<string, { beganHeld: boolean; answers: boolean; isOfTurnBefore: boolean }>();
  for (const event of events) {
    // A chunk after the start or end of a turn restarts its text.
    if (event.type.startsWith('RUN_')) for (const text of texts.values()) text.isOfTurnBefore = true;
    const said = event.metadata?.interlude;
    const id = String(event.messageId);
    if (id === messageId && event.type === 'TEXT_MESSAGE_START') {
      isQueued ||= !isHeld && said?.delivery === 'queued';
      if (said?.delivery !== 'queued') isQueued = false;
      isBegun = true;
    }
    // A chunk may be a whole message, or part of a started one. It shows that a queued message has arrived.
    if (id === messageId && event.type === 'TEXT_MESSAGE_CHUNK') isHeld ||= !isBegun;
    if (id === messageId && event.type === 'TEXT_MESSAGE_END') {
      isHeld ||= !isQueued;
      isBegun = false;
    }
    if (event.name === 'message:delivery' && isDelivered(event.value, messageId)) isHeld = true;
    if (!event.type.startsWith('TEXT_MESSAGE_')) continue;
    const before = texts.get(id);
    const isAnew = event.type === 'TEXT_MESSAGE_CHUNK' && before?.isOfTurnBefore === true;
    const known = event.type === 'TEXT_MESSAGE_START' || isAnew ? undefined : before;
    const says = Array.isArray(said?.replyTo) && said.replyTo.includes(messageId);
    const text = {
      beganHeld: known?.beganHeld ?? isHeld,
      // A restarted text keeps its first reply targets.
      answers: says || before?.answers === true,
      isOfTurnBefore: isAnew ? false : before?.isOfTurnBefore === true,
    };
    texts.set(id, text);
    if (event.type !== 'TEXT_MESSAGE_END') continue;
    texts.delete(id);
    if (text.beganHeld && text.answers) return true;
  }
  return false;
}

function isDelivered(value: unknown, messageId: string): boolean {
  const { message_id, delivery } = value as { message_id?: unknown; delivery?: unknown };
  return message_id === messageId && delivery === 'delivered';
}
