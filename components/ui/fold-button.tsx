import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import type { ReactNode } from 'react';
import { Icon } from './icon';

/** The heading of something that folds, with a sign of whether it is open. */
export function FoldButton(props: {
  isOpen: boolean;
  onToggle: () => void;
  disabled?: boolean;
  className?: string;
  children: ReactNode;
}) {
  const { isOpen, onToggle, disabled = false, className, children } = props;
  return (
    <button
      type="button"
      aria-expanded={isOpen}
      disabled={disabled}
      onClick={onToggle}
      className={clsx('hit -ml-1 flex items-center gap-1', className)}
    >
      <Icon of={ChevronRight} size={12} className={clsx('transition-transform', isOpen && 'rotate-90')} />
      {children}
    </button>
  );
}
