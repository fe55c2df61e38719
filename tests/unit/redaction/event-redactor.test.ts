import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { EventRedactor, StreamPrefix, streamStep } from '@interlude/protocol/redaction/event-redactor';
import { describe, expect, test } from 'vitest';

const BODY = '0123456789abcdefghijABCDEFGHIJ0123456789';
const TOKEN = `gh${'p_'}${BODY}`;
const [HEAD, TAIL] = [`use ${TOKEN.slice(0, 20)}`, `${TOKEN.slice(20)} now`];

const START: AgUiEvent = { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' };
const piece = (delta: string): AgUiEvent => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta });

/** The text after folding all deltas; `whole` replaces it. */
function shown(redactor: EventRedactor, events: readonly AgUiEvent[]): string {
  let text = '';
  for (const event of events) {
    const { delta, metadata } = redactor.redact(event, { redacted: 0 });
    if (typeof delta === 'string') text = metadata?.interlude?.whole === true ? delta : text + delta;
  }
  return text;
}

describe('EventRedactor', () => {
  test('redacts a secret split across two events', () => {
    const redactor = new EventRedactor(true);
    expect(shown(redactor, [START, piece(HEAD)])).not.toContain(BODY.slice(0, 8));
    expect(shown(redactor, [piece(TAIL)])).not.toContain(BODY.slice(-8));
    expect(shown(new EventRedactor(true), [START, piece(HEAD), piece(TAIL)])).toBe('use [redacted: github-token] now');
  });

  test('shows … for a stream whose start is gone', () => {
    expect(shown(new EventRedactor(true), [piece(TAIL), piece(' and on')])).toBe('…');
  });

  test('shows nothing until the start is read, then the whole text', () => {
    const redactor = new EventRedactor(false);
    const step = streamStep(piece(TAIL));
    expect(step !== null && redactor.lacks(step)).toBe(true);
    expect(shown(redactor, [piece(TAIL)])).toBe('');
    const soFar = new StreamPrefix('text m1');
    for (const event of [START, piece(HEAD), piece(TAIL)]) soFar.add(event, 1);
    const { delta, metadata } = redactor.redact(piece(TAIL), { redacted: 0 }, soFar);
    expect([delta, metadata?.interlude?.whole]).toEqual(['use [redacted: github-token] now', true]);
  });
});
