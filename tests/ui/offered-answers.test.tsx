import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { RequestItem } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { renderRequest } from '@/app/(console)/render-request';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { chosenOption, decisionOf, offeredOptions } from '@/components/requests/request-answer';
import { requestWeight } from '@/components/transcript/row-weight';
import { NowProvider } from '@/components/ui/clock';
import { zeroWidthCharacters } from '../support/hostile-texts';
import { unescaped } from '../support/rendered-text';
import { aRequest } from './rows';

const always: RequestOption = { id: 'always', label: 'Always allow npm', kind: 'allow', isLasting: true };
const once: RequestOption = { id: 'once', label: 'Yes', kind: 'allow' };
const no: RequestOption = { id: 'no', label: 'No, and say why', kind: 'deny' };
const never: RequestOption = { id: 'never', label: 'Never', kind: 'deny', isLasting: true };

const shown = (fields: Partial<RequestItem>) =>
  renderToStaticMarkup(
    <NowProvider renderedAt={100_000}>
      <ActionsProvider store={new ActionStore('s', () => {})}>{renderRequest(aRequest(fields))}</ActionsProvider>
    </NowProvider>,
  ).replaceAll('<!-- -->', '');
const text = (markup: string) => unescaped(markup.replace(/<[^>]*>/g, ''));
/** Text and key of each answer button. */
const buttons = (fields: Partial<RequestItem>) =>
  [...shown(fields).matchAll(/<button[^>]*?aria-disabled[^>]*>.*?<\/button>/gs)].flatMap(([markup]) => {
    if (markup.includes('underline')) return [];
    const key = /aria-keyshortcuts="(\w)"/.exec(markup)?.[1] ?? null;
    const label = text(markup.replace(/<span aria-hidden.*?<\/span>/gs, ''));
    return [key === null ? label : `${label} (${key})`];
  });

describe('a permission with options', () => {
  it('shows each effect first and allowing options before denying ones; the keys choose one-time options', () => {
    expect(buttons({ options: [never, always, once, no] })).toEqual([
      'Allow from now on: “Always allow npm”',
      'Allow: “Yes” (a)',
      'Deny from now on: “Never” (d)',
      'Deny: “No, and say why”',
    ]);
  });

  it('shows the effect regardless of the label, and nothing twice', () => {
    const lies: RequestOption[] = [
      { id: '1', label: 'Deny', kind: 'allow' },
      { id: '2', label: 'Allow', kind: 'deny' },
      { id: '3', label: 'Allow', kind: 'allow' },
      { id: '4', label: 'allow', kind: 'allow' },
    ];
    expect(buttons({ options: lies })).toEqual(['Allow: “Deny” (a)', 'Allow', 'Allow: “allow”', 'Deny: “Allow” (d)']);
    const answer = { commandId: 'c', behavior: 'allow', optionId: '1', state: 'queued', reason: null } as const;
    expect(text(shown({ options: lies, answer }))).toContain('Allowed “Deny”. Sending to the agent…');
  });

  it('leaves out labels that only repeat the effect', () => {
    const standard: RequestOption[] = [
      { id: '1', label: 'Always allow', kind: 'allow', isLasting: true },
      { id: '2', label: 'Allow once', kind: 'allow' },
      { id: '3', label: 'Reject', kind: 'deny' },
    ];
    expect(buttons({ options: standard })).toEqual(['Allow from now on', 'Allow (a)', 'Deny (d)']);
    const alike: RequestOption[] = [
      { id: '1', label: 'Allow', kind: 'allow' },
      { id: '2', label: 'Allow once', kind: 'allow' },
    ];
    expect(buttons({ options: alike })).toEqual(['Allow: “Allow” (a)', 'Allow: “Allow once”', 'Deny (d)']);
  });

  it('has no key for lasting options, and can always be denied', () => {
    expect(buttons({ options: [always] })).toEqual(['Allow from now on: “Always allow npm”', 'Deny (d)']);
  });

  it('has Allow and Deny without options', () => {
    expect(buttons({})).toEqual(['Allow (a)', 'Deny (d)']);
    expect(offeredOptions(aRequest()).map(decisionOf)).toEqual([{ behavior: 'allow' }, { behavior: 'deny' }]);
  });

  it('shows every character of a label, invisible ones as labels', () => {
    const label = `Yes \u202e${zeroWidthCharacters(12).slice(0, 40)}`;
    expect(shown({ options: [{ ...once, label }, no] })).toContain('⟨RLO⟩');
  });

  it('has a row weight that counts its labels', () => {
    const heavy = Array.from({ length: 16 }, (_, index) => ({ ...once, id: `${index}`, label: 'א\u202e'.repeat(100) }));
    expect(requestWeight(aRequest({ options: heavy }), 1e9)).toBeGreaterThan(requestWeight(aRequest(), 1e9) + 1_000);
  });

  it('shows the chosen option, unless the outcome contradicts it', () => {
    const answer = { commandId: 'c', behavior: 'allow', optionId: 'always', state: 'queued', reason: null } as const;
    const options = [once, always, no];
    expect(text(shown({ options, answer }))).toContain('Allowed “Always allow npm”. Sending to the agent…');
    const over = { options, resolvedAt: 2_000, answer: { ...answer, state: 'done' } } as const;
    expect(text(shown({ ...over, outcome: 'allowed' }))).toContain('Allow from now on: “Always allow npm”');
    const title = 'x&rdquo;. Signed out';
    expect(text(shown({ ...over, outcome: 'allowed', title, input: { a: 1 } }))).toContain('“x". Signed out”');
    expect(chosenOption(aRequest({ ...over, outcome: 'denied' }))).toBeNull();
    expect(chosenOption(aRequest({ ...over, answer: { ...answer, state: 'failed' } }))).toBeNull();
  });
});
