// @vitest-environment happy-dom
import { readFileSync } from 'node:fs';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { personId, setPerson } from '@/components/ui/browser-storage';
import { Term } from '@/components/ui/term';
import { TERMS, type TermName } from '@/components/ui/terms';

afterEach(cleanup);

const { text } = TERMS.outbox;

function shown(): HTMLElement {
  render(<Term of="outbox">Unsent records</Term>);
  return screen.getByRole('button', { name: 'Unsent records' });
}

it('shows its explanation under the pointer, without moving the focus, and hides it again', async () => {
  const term = shown();
  fireEvent.pointerEnter(term, { pointerType: 'mouse' });
  const tooltip = await screen.findByRole('tooltip');
  expect(tooltip.textContent).toContain(text);
  expect(term.getAttribute('aria-describedby')).toBe(tooltip.id);
  expect(document.activeElement).toBe(document.body);
  fireEvent.pointerLeave(term, { pointerType: 'mouse' });
  await waitFor(() => expect(screen.queryByRole('tooltip')).toBeNull());
});

it('shows its explanation when Tab reaches it, and not when a script focuses it', async () => {
  const term = shown();
  term.focus();
  expect(term.getAttribute('aria-describedby')).toBeNull();
  fireEvent.keyUp(term, { key: 'Tab' });
  await screen.findByRole('tooltip');
  fireEvent.blur(term);
  await waitFor(() => expect(screen.queryByRole('tooltip')).toBeNull());
});

it('opens on a tap, with a link to all words', async () => {
  const term = shown();
  fireEvent.pointerEnter(term, { pointerType: 'touch' });
  expect(screen.queryByRole('tooltip')).toBeNull();
  fireEvent.click(term);
  const panel = await screen.findByRole('dialog', { name: 'Outbox' });
  expect(panel.textContent).toContain(text);
  expect(screen.getByRole('link', { name: 'See all terms' }).getAttribute('href')).toBe('/help#outbox');
  fireEvent.click(term);
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
});

it('leads nowhere in an embed, which has no other pages', async () => {
  const person = personId();
  setPerson(null);
  fireEvent.click(shown());
  expect((await screen.findByRole('dialog', { name: 'Outbox' })).textContent).toBe(text);
  setPerson(person);
});

it('is left out of the tab order where it repeats', () => {
  render(
    <Term of="outbox" skipped>
      Unsent records
    </Term>,
  );
  expect(screen.getByRole('button').tabIndex).toBe(-1);
});

it('explains only terms that the glossary defines', () => {
  const glossary = readFileSync('lib/protocol/GLOSSARY.md', 'utf8');
  for (const name of Object.keys(TERMS) as TermName[]) expect(glossary).toContain(`**${name}**`);
});
