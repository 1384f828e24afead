package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/copydb/copydb/test/servers"
)

const shopDatabase = "shop"

// shopTables are the tables of the shop, parents first.
var shopTables = []string{"customers", "products", "orders", "order_items", "payments"}

const shopSchema = `
CREATE DATABASE shop CHARACTER SET utf8mb4;
USE shop;
CREATE TABLE customers (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  email VARCHAR(120) NOT NULL,
  name VARCHAR(80) NOT NULL,
  country CHAR(2) CHARACTER SET ascii NOT NULL,
  born DATE NULL,
  joined TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (id),
  UNIQUE KEY email (email)
);
CREATE TABLE products (
  sku VARCHAR(16) CHARACTER SET ascii NOT NULL,
  title VARCHAR(120) NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  weight DOUBLE NULL,
  description TEXT NULL,
  tags SET('new','sale','fragile','import') NOT NULL DEFAULT '',
  PRIMARY KEY (sku)
);
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  customer BIGINT UNSIGNED NOT NULL,
  status ENUM('placed','paid','shipped','returned') NOT NULL DEFAULT 'placed',
  placed DATETIME(3) NOT NULL,
  changed TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  note VARCHAR(200) NULL,
  PRIMARY KEY (id),
  KEY customer (customer, placed),
  CONSTRAINT order_customer FOREIGN KEY (customer) REFERENCES customers (id)
);
CREATE TABLE order_items (
  order_id BIGINT UNSIGNED NOT NULL,
  line TINYINT UNSIGNED NOT NULL,
  sku VARCHAR(16) CHARACTER SET ascii NOT NULL,
  quantity SMALLINT UNSIGNED NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  total DECIMAL(12,2) GENERATED ALWAYS AS (quantity * price) STORED,
  PRIMARY KEY (order_id, line),
  KEY sku (sku),
  CONSTRAINT item_order FOREIGN KEY (order_id) REFERENCES orders (id),
  CONSTRAINT item_product FOREIGN KEY (sku) REFERENCES products (sku)
);
CREATE TABLE payments (
  token BINARY(16) NOT NULL,
  order_id BIGINT UNSIGNED NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  reply JSON NULL,
  PRIMARY KEY (token),
  KEY order_id (order_id),
  CONSTRAINT payment_order FOREIGN KEY (order_id) REFERENCES orders (id)
)`

// fills are the statements that fill the shop's tables, each for the numbers n
// from one bound to another. The server makes the rows: they need not travel.
var fills = []struct {
	perOrder float64 // numbers for each order
	sql      string
}{
	{0.4, `INSERT INTO customers (id, email, name, country, born, joined)
	  SELECT n, CONCAT('customer', n, '@example.org'), CONCAT(ELT(1 + n % 6, 'Zoë', 'José', '李雷', 'Олена', 'Ann', 'Bjørn'), ' ', HEX(CRC32(n))),
	    ELT(1 + n % 5, 'DE', 'FR', 'PT', 'UA', 'SG'), IF(n % 9 = 0, NULL, '1960-01-01' + INTERVAL n % 15000 DAY), '2024-01-01' + INTERVAL n MINUTE`},
	{0.04, `INSERT INTO products (sku, title, price, weight, description, tags)
	  SELECT CONCAT('SKU-', LPAD(n, 8, '0')), CONCAT('Product № ', n), 1 + n % 50000 / 100, IF(n % 4 = 0, NULL, n / 7),
	    REPEAT(CONCAT('Line ', n, ' of a text that goes on. '), n % 12), n % 16`},
	{1, `INSERT INTO orders (id, customer, status, placed, changed, note)
	  SELECT n, 1 + CRC32(n) % FLOOR(0.4 * @orders), 1 + n % 4, '2025-01-01' + INTERVAL n * 37 SECOND, '2025-06-01', IF(n % 3 = 0, CONCAT('ring twice at ', n), NULL)`},
	{1, `INSERT INTO order_items (order_id, line, sku, quantity, price)
	  SELECT n, line, CONCAT('SKU-', LPAD(1 + CRC32(n * 3 + line) % FLOOR(0.04 * @orders), 8, '0')), 1 + n % 5, 1 + n % 9999 / 100`},
	{0.4, `INSERT INTO payments (token, order_id, amount, reply)
	  SELECT UNHEX(LEFT(SHA2(n, 256), 32)), 2 * n, 1 + n % 99999 / 100, JSON_OBJECT('ok', n % 2 = 0, 'reference', CONCAT('R', n))`},
}

// loadShop makes the shop's tables and fills them, with about four rows for each
// order.
func loadShop(ctx context.Context, srv *servers.Server, orders int) error {
	conn, err := srv.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, shopSchema); err != nil {
		return err
	}
	// Parents are filled first, so nothing needs to be looked up.
	set := fmt.Sprintf("SET SESSION foreign_key_checks = 0, unique_checks = 0, time_zone = '+00:00', @orders = %d", orders)
	if _, err := conn.ExecContext(ctx, set); err != nil {
		return err
	}
	const batch = 20_000
	for _, f := range fills {
		count := int(f.perOrder * float64(orders))
		for from := 0; from < count; from += batch {
			if err := fill(ctx, conn, f.sql, from, min(batch, count-from)); err != nil {
				return err
			}
		}
	}
	// Estimates of row numbers come from what this counts.
	_, err = conn.ExecContext(ctx, "ANALYZE NO_WRITE_TO_BINLOG TABLE "+strings.Join(shopTables, ", "))
	return err
}

// fill runs a statement for the numbers from+1 to from+count. For order_items
// each number has one to three lines.
func fill(ctx context.Context, conn *sql.Conn, insert string, from, count int) error {
	const digit = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4" +
		" UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	const lines = "(SELECT 1 line UNION ALL SELECT 2 UNION ALL SELECT 3)"
	query := fmt.Sprintf("%s FROM (SELECT %d + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 1 n"+
		" FROM %[3]s a, %[3]s b, %[3]s c, %[3]s e, (SELECT 0 d UNION ALL SELECT 1) f) numbers", insert, from, digit)
	if hasLines(insert) {
		query += ", " + lines + " l WHERE line <= 1 + n % 3 AND"
	} else {
		query += " WHERE"
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("%s n <= %d ORDER BY 1", query, from+count)); err != nil {
		return fmt.Errorf("%.40s …: %w", insert, err)
	}
	return nil
}
