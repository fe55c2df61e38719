import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { RedactedNote } from '@/components/transcript/transcript';
import { aCall, aMessage, aTurn } from './rows';

const render = (texts: string[]) =>
  renderToStaticMarkup(<RedactedNote turns={[aTurn({ items: texts.map((text) => aMessage({ text })) })]} />);

it('counts the redacted secrets that are loaded, and shows nothing without any', () => {
  expect(render(['all of it'])).not.toContain('removed');
  expect(render(['use [redacted: token]'])).toContain('1 secret removed');
  expect(render(['[redacted: token] [redacted: jwt]', '[redacted: aws-access-key]'])).toContain('3 secrets removed');
});

it('counts the secrets of a call once, though its arguments appear twice', () => {
  const argsText = '{"command":"[redacted: token]"}';
  const turns = [aTurn({ items: [aCall({ argsText, args: JSON.parse(argsText) })] })];
  expect(renderToStaticMarkup(<RedactedNote turns={turns} />)).toContain('1 secret removed');
});

it('is shown to readers without access to secrets, also while the transcript grows', () => {
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
