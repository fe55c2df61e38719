CREATE TABLE `attachment_parts` (
	`session_id` text NOT NULL,
	`hash` text NOT NULL,
	`part` integer NOT NULL,
	`bytes` blob NOT NULL,
	PRIMARY KEY(`session_id`, `hash`, `part`)
);
--> statement-breakpoint
CREATE TABLE `attachments` (
	`session_id` text NOT NULL,
	`hash` text NOT NULL,
	`name` text NOT NULL,
	`media_type` text NOT NULL,
	`bytes` integer NOT NULL,
	`sent_at` integer NOT NULL,
	`is_named` integer DEFAULT false NOT NULL,
	PRIMARY KEY(`session_id`, `hash`)
);
--> statement-breakpoint
CREATE INDEX `attachments_unnamed` ON `attachments` (`sent_at`) WHERE is_named = 0;