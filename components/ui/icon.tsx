import type { IconNode } from 'lucide';
import { createElement, type SVGProps } from 'react';

/**
 * A decorative Lucide icon. Lucide's React package would double the code of a page's icons.
 *
 * @param props `size` in pixels
 */
export function Icon({ of, size = 24, ...props }: SVGProps<SVGSVGElement> & { of: IconNode; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={2}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      {...props}
    >
      {of.map(([tag, attributes]) => createElement(tag, { key: JSON.stringify(attributes), ...attributes }))}
    </svg>
  );
}

/** Two bar lines with a dot between them. */
export function Logo({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" className={className}>
      <rect x="3.5" y="3" width="2" height="14" rx="1" fill="currentColor" />
      <rect x="14.5" y="3" width="2" height="14" rx="1" fill="currentColor" />
      <circle cx="10" cy="10" r="2.5" className="fill-accent" />
    </svg>
  );
}
