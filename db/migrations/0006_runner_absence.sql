ALTER TABLE `runners` ADD `lost_at` integer;--> statement-breakpoint
ALTER TABLE `runners` ADD `tell_at` integer;--> statement-breakpoint
UPDATE `runners` SET `tell_at` = 0 WHERE `alive_until` IS NULL;
