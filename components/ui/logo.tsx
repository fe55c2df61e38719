/** Two bar lines and what happens between them. */
export function Logo({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" className={className}>
      <rect x="3.5" y="3" width="2" height="14" rx="1" fill="currentColor" />
      <rect x="14.5" y="3" width="2" height="14" rx="1" fill="currentColor" />
      <circle cx="10" cy="10" r="2.5" className="fill-accent" />
    </svg>
  );
}
