// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useRef, useState } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ButtonPopover } from '@/components/ui/popover';

function Page() {
  const [open, setOpen] = useState(true);
  const button = useRef<HTMLButtonElement>(null);
  return (
    <>
      <button ref={button} type="button">
        why?
      </button>
      <input aria-label="elsewhere" />
      {open && (
        <ButtonPopover label="Why" button={button} onClose={() => setOpen(false)}>
          Because.
        </ButtonPopover>
      )}
    </>
  );
}

beforeEach(() => {
  vi.useFakeTimers();
  render(<Page />);
  fireEvent.keyDown(screen.getByRole('dialog', { name: 'Why' }), { key: 'Escape' });
  expect(screen.queryByRole('dialog')).toBeNull();
});
afterEach(() => {
  vi.useRealTimers();
  cleanup();
});

test('ButtonPopover returns the focus to its button', () => {
  vi.runAllTimers();
  expect(document.activeElement).toBe(screen.getByRole('button', { name: 'why?' }));
});

test('ButtonPopover leaves the focus where the reader moved it', () => {
  const elsewhere = screen.getByRole('textbox', { name: 'elsewhere' });
  elsewhere.focus();
  vi.runAllTimers();
  expect(document.activeElement).toBe(elsewhere);
});
