package model

// fault is a mistake that is put in on purpose.
type fault struct {
	name   string
	breaks string   // the rule that is left out
	tables []string // of the histories that look for it; nil: any
}

var (
	none *fault // the design as it is

	insertIgnore = &fault{"INSERT IGNORE in the copy",
		"loads are strict: a value that the target cannot hold stops the run", nil}
	updateWhere = &fault{"UPDATE … WHERE full row in the replay",
		"a change of a converging table is all columns under the key, whatever is there", []string{"keyed"}}
	checkpointFirst = &fault{"a checkpoint before the commit",
		"invariant 1: no position moves ahead of the target", nil}
	startInvisible = &fault{"position read before the snapshot without the visibility rule",
		"a start is a place that every later snapshot sees", nil}
	cascadesOverChunks = &fault{"cascades replayed over snapshots of different instants",
		"tables tied by unlogged cascades are exact, one component in one snapshot", []string{"parent", "child"}}
	jsonBelieved = &fault{"a target that forgets acknowledged commits while the JSON is believed",
		"invariant 2: the target says how far it is", nil}
	noFence = &fault{"a statement of a killed run that ends after the new run wrote",
		"invariant 5: every write reads the epoch first", nil}
	truncateUnjournaled = &fault{"TRUNCATE replayed under a newer marker",
		"the journal and the markers cover a table's DDL, TRUNCATE too", []string{"bare"}}
	renameTwice = &fault{"a RENAME swap run twice",
		"an unconfirmed journal entry is decided by TABLE_IDs", []string{"keyed", "swap"}}
	foldHeldApart = &fault{"folding keys that the server holds apart",
		"only byte-equal keys are folded", nil}
	markerRemoved = &fault{"marker removed at the end",
		"the bookkeeping stays until cleanup", nil}

	consistentTooEarly = &fault{"consistent_at from before the last snapshot",
		"consistent_at is read after the last snapshot was opened", nil}
	highWaterIgnored = &fault{"an image before high-water",
		"on a resume consistent_at is at least high-water", nil}
	windowsOverlap = &fault{"two windows written at a time, each key over one connection",
		"no write of a window before the one before is wholly committed", nil}
	cancelledDropped = &fault{"a row inserted and deleted in one window is no change",
		"what a window ends without is deleted", nil}
	keyLeftOut = &fault{"ON DUPLICATE KEY UPDATE of all columns but the key's",
		"key columns are updated, too: the row that is met may be another one", []string{"keyed"}}
	collisionSkipped = &fault{"a row of a window that answers 1062 is left out",
		"1062 is answered with REPLACE", nil}
	classSpread = &fault{"keys that the server holds equal applied in any order",
		"of a class of equal keys, deletes come before the upsert", []string{"folded"}}
	ddlInCopy = &fault{"a DDL between two chunks of a table",
		"it voids the table's copy", []string{"keyed", "swap"}}
	halfCovered = &fault{"a RENAME that one table's copy has seen, and another's not",
		"it voids the copies that have not", []string{"keyed", "swap"}}
	ddlBelowHighWater = &fault{"high-water does not cover a DDL that was begun",
		"the journal's entry raises high-water to the DDL's end", nil}
	sessionReopened = &fault{"a session opened anew on a target that forgot, and used as before",
		"a lost session ends the attempt: the next one takes over and reads what is there", nil}

	// planted are those that must be found.
	planted = []*fault{
		insertIgnore, updateWhere, checkpointFirst, startInvisible, cascadesOverChunks, jsonBelieved,
		noFence, truncateUnjournaled, renameTwice, foldHeldApart, markerRemoved,
		consistentTooEarly, highWaterIgnored, windowsOverlap, cancelledDropped, keyLeftOut, collisionSkipped,
		classSpread, ddlInCopy, halfCovered, ddlBelowHighWater, sessionReopened,
	}

	// repaired is a mistake that the log repairs: two rows of different instants
	// that collide have both changed behind the start.
	repaired = &fault{"rows of the copy that collide with others are left out", "none", nil}
)
