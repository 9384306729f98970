-- The five transactions as functions in the server. Each does the work of its script in ../statements, with
-- the same statements where a function needs no other. p_ begins a parameter's name, v_ a variable's, and r_
-- that of a column of the result: what a terminal would show.
--
-- Source: TPC Benchmark C, revision 5.11, clause 2.

-- Clause 2.4. The arrays hold at least p_ol_cnt lines.
--
-- The block with EXCEPTION undoes the order if an item is unknown, and the function can still say so. Without
-- it the function would fail, and the client would count an error. The price is a subtransaction for each
-- order, with a transaction number of its own. A procedure that rolls back needs version 11, and a client
-- that sends BEGIN and ROLLBACK needs two round trips more.
CREATE OR REPLACE FUNCTION orders_new_order(
    p_w_id integer, p_d_id integer, p_c_id integer, p_ol_cnt integer,
    p_i_ids integer[], p_supply_w_ids integer[], p_quantities integer[],
    OUT r_items_known boolean, OUT r_o_id integer, OUT r_entry_d timestamp,
    OUT r_c_last text, OUT r_c_credit text, OUT r_c_discount numeric,
    OUT r_w_tax numeric, OUT r_d_tax numeric,
    OUT r_i_names text[], OUT r_s_quantities integer[], OUT r_brands text[],
    OUT r_i_prices numeric[], OUT r_amounts numeric[], OUT r_total numeric)
LANGUAGE plpgsql AS $$
DECLARE
    v_all_local integer := 1;
    v_i_name text;
    v_i_price numeric;
    v_i_data text;
    v_s_quantity integer;
    v_s_data text;
    v_dist_info text;
    v_amount numeric;
BEGIN
    r_items_known := true;
    r_entry_d := CURRENT_TIMESTAMP;
    r_total := 0;
    FOR v_line IN 1 .. p_ol_cnt LOOP
        IF p_supply_w_ids[v_line] <> p_w_id THEN
            v_all_local := 0;
        END IF;
    END LOOP;

    SELECT w_tax INTO r_w_tax FROM warehouse WHERE w_id = p_w_id;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w_id AND d_id = p_d_id
    RETURNING d_next_o_id - 1, d_tax INTO r_o_id, r_d_tax;
    SELECT c_discount, c_last, c_credit INTO r_c_discount, r_c_last, r_c_credit
      FROM customer WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES (r_o_id, p_d_id, p_w_id, p_c_id, r_entry_d, NULL, p_ol_cnt, v_all_local);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (r_o_id, p_d_id, p_w_id);

    FOR v_line IN 1 .. p_ol_cnt LOOP
        SELECT i_price, i_name, i_data INTO v_i_price, v_i_name, v_i_data
          FROM item WHERE i_id = p_i_ids[v_line];
        IF NOT FOUND THEN
            RAISE no_data_found;
        END IF;

        UPDATE stock
           SET s_quantity = s_quantity - p_quantities[v_line]
                            + CASE WHEN s_quantity >= p_quantities[v_line] + 10 THEN 0 ELSE 91 END,
               s_ytd = s_ytd + p_quantities[v_line],
               s_order_cnt = s_order_cnt + 1,
               s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = p_w_id THEN 0 ELSE 1 END
         WHERE s_w_id = p_supply_w_ids[v_line] AND s_i_id = p_i_ids[v_line]
        RETURNING s_quantity, s_data,
                  CASE p_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                              WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                              WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                              WHEN 10 THEN s_dist_10 END
             INTO v_s_quantity, v_s_data, v_dist_info;

        v_amount := p_quantities[v_line] * v_i_price;
        INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                                ol_quantity, ol_amount, ol_dist_info)
        VALUES (r_o_id, p_d_id, p_w_id, v_line, p_i_ids[v_line], p_supply_w_ids[v_line], NULL,
                p_quantities[v_line], v_amount, v_dist_info);

        r_total := r_total + v_amount;
        r_i_names[v_line] := v_i_name;
        r_s_quantities[v_line] := v_s_quantity;
        r_i_prices[v_line] := v_i_price;
        r_amounts[v_line] := v_amount;
        IF position('ORIGINAL' IN v_i_data) > 0 AND position('ORIGINAL' IN v_s_data) > 0 THEN
            r_brands[v_line] := 'B';
        ELSE
            r_brands[v_line] := 'G';
        END IF;
    END LOOP;

    r_total := r_total * (1 - r_c_discount) * (1 + r_w_tax + r_d_tax);
EXCEPTION
    WHEN no_data_found THEN
        r_items_known := false;
END
$$;

-- Clause 2.5. The customer is number p_c_id, or of those called p_c_last the one in the middle.
CREATE OR REPLACE FUNCTION orders_payment(
    p_w_id integer, p_d_id integer, p_c_w_id integer, p_c_d_id integer,
    p_by_name boolean, p_c_id integer, p_c_last text, p_amount numeric,
    OUT r_w_street_1 text, OUT r_w_street_2 text, OUT r_w_city text, OUT r_w_state text, OUT r_w_zip text,
    OUT r_d_street_1 text, OUT r_d_street_2 text, OUT r_d_city text, OUT r_d_state text, OUT r_d_zip text,
    OUT r_c_id integer, OUT r_c_first text, OUT r_c_middle text, OUT r_c_last text,
    OUT r_c_street_1 text, OUT r_c_street_2 text, OUT r_c_city text, OUT r_c_state text, OUT r_c_zip text,
    OUT r_c_phone text, OUT r_c_since timestamp, OUT r_c_credit text,
    OUT r_c_credit_lim numeric, OUT r_c_discount numeric, OUT r_c_balance numeric, OUT r_c_data text,
    OUT r_date timestamp)
LANGUAGE plpgsql AS $$
DECLARE
    v_w_name text;
    v_d_name text;
    v_namesakes bigint;
BEGIN
    r_date := CURRENT_TIMESTAMP;
    SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip
      INTO v_w_name, r_w_street_1, r_w_street_2, r_w_city, r_w_state, r_w_zip
      FROM warehouse WHERE w_id = p_w_id;
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w_id;
    SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip
      INTO v_d_name, r_d_street_1, r_d_street_2, r_d_city, r_d_state, r_d_zip
      FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;
    UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w_id AND d_id = p_d_id;

    IF p_by_name THEN
        SELECT count(*) INTO v_namesakes
          FROM customer WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last;
        SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,
               c_since, c_credit, c_credit_lim, c_discount
          INTO r_c_id, r_c_first, r_c_middle, r_c_last, r_c_street_1, r_c_street_2, r_c_city, r_c_state,
               r_c_zip, r_c_phone, r_c_since, r_c_credit, r_c_credit_lim, r_c_discount
          FROM customer
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last
         ORDER BY c_first LIMIT 1 OFFSET (v_namesakes - 1) / 2;
    ELSE
        SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,
               c_since, c_credit, c_credit_lim, c_discount
          INTO r_c_id, r_c_first, r_c_middle, r_c_last, r_c_street_1, r_c_street_2, r_c_city, r_c_state,
               r_c_zip, r_c_phone, r_c_since, r_c_credit, r_c_credit_lim, r_c_discount
          FROM customer WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = p_c_id;
    END IF;

    IF r_c_credit = 'BC' THEN
        UPDATE customer
           SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
               c_payment_cnt = c_payment_cnt + 1,
               c_data = left(c_id || ' ' || c_d_id || ' ' || c_w_id || ' ' || p_d_id || ' ' || p_w_id || ' '
                             || p_amount || ' ' || c_data, 500)
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = r_c_id
        RETURNING c_balance, left(c_data, 200) INTO r_c_balance, r_c_data;
    ELSE
        UPDATE customer
           SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
               c_payment_cnt = c_payment_cnt + 1
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = r_c_id
        RETURNING c_balance INTO r_c_balance;
    END IF;

    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (r_c_id, p_c_d_id, p_c_w_id, p_d_id, p_w_id, r_date, p_amount, v_w_name || '    ' || v_d_name);
END
$$;

-- Clause 2.6. The customer is number p_c_id, or of those called p_c_last the one in the middle.
CREATE OR REPLACE FUNCTION orders_order_status(
    p_w_id integer, p_d_id integer, p_by_name boolean, p_c_id integer, p_c_last text,
    OUT r_c_id integer, OUT r_c_balance numeric, OUT r_c_first text, OUT r_c_middle text, OUT r_c_last text,
    OUT r_o_id integer, OUT r_entry_d timestamp, OUT r_carrier_id integer,
    OUT r_i_ids integer[], OUT r_supply_w_ids integer[], OUT r_quantities integer[], OUT r_amounts numeric[],
    OUT r_delivery_ds timestamp[])
LANGUAGE plpgsql AS $$
DECLARE
    v_namesakes bigint;
BEGIN
    IF p_by_name THEN
        SELECT count(*) INTO v_namesakes
          FROM customer WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last;
        SELECT c_id, c_balance, c_first, c_middle, c_last
          INTO r_c_id, r_c_balance, r_c_first, r_c_middle, r_c_last
          FROM customer
         WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last
         ORDER BY c_first LIMIT 1 OFFSET (v_namesakes - 1) / 2;
    ELSE
        SELECT c_id, c_balance, c_first, c_middle, c_last
          INTO r_c_id, r_c_balance, r_c_first, r_c_middle, r_c_last
          FROM customer WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;
    END IF;

    SELECT o_id, o_entry_d, o_carrier_id INTO r_o_id, r_entry_d, r_carrier_id
      FROM orders WHERE o_w_id = p_w_id AND o_d_id = p_d_id AND o_c_id = r_c_id ORDER BY o_id DESC LIMIT 1;
    SELECT array_agg(ol_i_id), array_agg(ol_supply_w_id), array_agg(ol_quantity), array_agg(ol_amount),
           array_agg(ol_delivery_d)
      INTO r_i_ids, r_supply_w_ids, r_quantities, r_amounts, r_delivery_ds
      FROM order_line WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id = r_o_id;
END
$$;

-- Clause 2.7. r_o_ids has the order that was delivered in each district, null for a district without one.
CREATE OR REPLACE FUNCTION orders_delivery(p_w_id integer, p_carrier_id integer, OUT r_o_ids integer[])
LANGUAGE plpgsql AS $$
DECLARE
    v_o_id integer;
    v_c_id integer;
    v_amount numeric;
BEGIN
    FOR v_d_id IN 1 .. 10 LOOP
        -- A second delivery waits for this row, and then takes the next order.
        SELECT no_o_id INTO v_o_id FROM new_order WHERE no_w_id = p_w_id AND no_d_id = v_d_id
         ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        r_o_ids[v_d_id] := v_o_id;
        CONTINUE WHEN NOT FOUND;

        DELETE FROM new_order WHERE no_w_id = p_w_id AND no_d_id = v_d_id AND no_o_id = v_o_id;
        SELECT o_c_id INTO v_c_id FROM orders WHERE o_w_id = p_w_id AND o_d_id = v_d_id AND o_id = v_o_id;
        UPDATE orders SET o_carrier_id = p_carrier_id
         WHERE o_w_id = p_w_id AND o_d_id = v_d_id AND o_id = v_o_id;
        UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
         WHERE ol_w_id = p_w_id AND ol_d_id = v_d_id AND ol_o_id = v_o_id;
        SELECT sum(ol_amount) INTO v_amount
          FROM order_line WHERE ol_w_id = p_w_id AND ol_d_id = v_d_id AND ol_o_id = v_o_id;
        UPDATE customer SET c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
         WHERE c_w_id = p_w_id AND c_d_id = v_d_id AND c_id = v_c_id;
    END LOOP;
END
$$;

-- Clause 2.8. Items of the district's last 20 orders of which fewer than p_threshold are in stock.
CREATE OR REPLACE FUNCTION orders_stock_level(
    p_w_id integer, p_d_id integer, p_threshold integer, OUT r_low_stock bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_next_o_id integer;
BEGIN
    SELECT d_next_o_id INTO v_next_o_id FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;
    SELECT count(DISTINCT s_i_id) INTO r_low_stock FROM order_line, stock
     WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id >= v_next_o_id - 20 AND ol_o_id < v_next_o_id
       AND s_w_id = p_w_id AND s_i_id = ol_i_id AND s_quantity < p_threshold;
END
$$;
