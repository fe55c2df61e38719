'use client';

import { Monitor, Moon, Sun } from 'lucide';
import { useTheme } from './appearance';
import { Icon } from './icon';

const NEXT = { system: 'light', light: 'dark', dark: 'system' } as const;
const ICON = { system: Monitor, light: Sun, dark: Moon };

/** @param props.labelClassName of the label; `tip` makes it a tooltip */
export function ThemeToggle(props: { className: string; labelClassName?: string }) {
  const [current, setTheme] = useTheme();
  return (
    <button
      type="button"
      onClick={() => setTheme(NEXT[current])}
      aria-label={`Theme: ${current}. Change to ${NEXT[current]}`}
      className={props.className}
    >
      <Icon of={ICON[current]} size={16} strokeWidth={1.75} className="shrink-0" />
      <span className={props.labelClassName}>Theme: {current}</span>
    </button>
  );
}
