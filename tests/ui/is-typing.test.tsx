// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

afterEach(cleanup);

function Page({ onKey, children }: { onKey: (key: string) => void; children: React.ReactNode }) {
  const hear = ({ key }: KeyboardEvent) => onKey(key === 'ArrowDown' ? '↓' : key);
  useShortcuts({ 'sessions.next': hear, 'sessions.previous': hear, 'inbox.next-request': hear });
  return <div data-testid="box">{children}</div>;
}

/** Shortcut keys that act on a control. */
function heardOn(control: React.ReactNode): string {
  let heard = '';
  const page = render(
    <Page
      onKey={(key) => {
        heard += key;
      }}
    >
      {control}
    </Page>,
  );
  const target = screen.getByTestId('box').firstElementChild as Element;
  for (const key of ['j', 'k', 'r', 'ArrowDown']) fireEvent.keyDown(target, { key });
  page.unmount();
  return heard;
}

it('shortcuts act on checkboxes and buttons', () => {
  expect(heardOn(<input type="checkbox" />)).toBe('jkr↓');
  expect(heardOn(<input type="button" />)).toBe('jkr↓');
  expect(heardOn(<button type="button" />)).toBe('jkr↓');
  // Arrows select the next radio button.
  expect(heardOn(<input type="radio" />)).toBe('jkr');
});

it('shortcuts ignore keys in fields, and arrows on radio buttons', () => {
  for (const field of [
    <input key="a" />,
    <input key="b" type="search" />,
    <input key="c" type="time" />,
    <textarea key="d" />,
    <select key="e" />,
  ]) {
    expect(heardOn(field)).toBe('');
  }
});
