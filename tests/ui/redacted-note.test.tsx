import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { RedactedNote } from '@/components/transcript/transcript';
import { aCall, aMessage, aTurn } from './rows';

const render = (texts: string[]) =>
  renderToStaticMarkup(<RedactedNote turns={[aTurn({ items: texts.map((text) => aMessage({ text })) })]} />);

it('says how many secrets were taken out of what is loaded, and nothing where none were', () => {
  expect(render(['all of it'])).not.toContain('taken out');
  expect(render(['use [redacted: token]'])).toContain('1 secret removed');
  expect(render(['[redacted: token] [redacted: jwt]', '[redacted: aws-access-key]'])).toContain(
    '3 secrets were taken out',
  );
});

it('counts those of a call once, though its arguments are there twice', () => {
  const argsText = '{"command":"[redacted: token]"}';
  const turns = [aTurn({ items: [aCall({ argsText, args: JSON.parse(argsText) })] })];
  expect(renderToStaticMarkup(<RedactedNote turns={turns} />)).toContain('1 secret removed');
});

it('is there for readers who are told no secrets, also while the transcript goes on', () => {
  const page = { position: '1', hasMore: false, turns: [] };
  expect(transcriptFromPage(page).redacts).toBeUndefined();
  const state = transcriptFromPage({ ...page, redacted: 0 });
  expect(state.redacts).toBe(true);
  const event = { type: 'CUSTOM', name: 'interlude:notice', value: { text: '[redacted: jwt]' } };
  const entry = { position: '2', occurredAt: 1, receivedAt: 1, event };
  const { redacts, turns } = foldTranscript(state, [entry]);
  expect(redacts).toBe(true);
  expect(renderToStaticMarkup(<RedactedNote turns={turns} />)).toContain('1 secret removed');
});
